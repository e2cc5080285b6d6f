#include "net/internal/http_answer.h"

#include <utility>

namespace optcache::net {

namespace http = boost::beast::http;

HttpAnswer::HttpAnswer(HttpResponse response, const Request& request)
    : body_(response.shared_body != nullptr
                ? std::move(response.shared_body)
                : std::make_shared<const std::string>(std::move(response.body))),
      source_(std::move(response.source)) {
  const ByteCount length = source_ != nullptr ? source_->size() : body_->size();
  message_.result(static_cast<unsigned>(response.status));
  message_.version(11);
  for (const auto& [name, value] : response.headers)
    message_.insert(name, value);
  message_.keep_alive(request.keep_alive);
  // To a client of HTTP/1.0 a connection ends with its answer, unless the answer says otherwise.
  if (request.keep_alive && request.version == 10)
    message_.set(http::field::connection, "keep-alive");
  // 304 has no body, and a length would be that of the whole object (RFC 9110, section 15.4.5).
  if (response.status != 304) message_.content_length(length);
  if (request.head) return;
  message_.body() = {body_->data(), body_->size()};
  if (source_ != nullptr) unsent_ = length;
}

}  // namespace optcache::net
