// HTTP by a Unix socket, which cpprestsdk does not speak.
//
// A request is one Exchange: connect, write, read, close. Connections are not kept: to make one
// takes microseconds on the same machine, and none can be stale. Everything happens on the loop's
// thread; the client cancels its exchanges when it dies, so their callbacks may refer to it.

#include "net/internal/unix_http_client.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "net/address.h"
#include "net/asio.h"
#include "net/internal/event_loop_impl.h"
#include "net/internal/listener.h"

namespace optcache::net {
namespace {

namespace http = boost::beast::http;

constexpr std::uint32_t kResponseHeadMax = 16U << 10U;

bool IsSpaceOrControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 0x7f;
}

// One request and its response. Lives in the handlers of its operations.
class UnixExchange : public std::enable_shared_from_this<UnixExchange> {
 public:
  UnixExchange(EventLoop& loop, HttpRequest request, ByteCount body_max, HttpCallback done)
      : request_(std::move(request)),
        body_max_(body_max),
        done_(std::move(done)),
        socket_(ContextOf(loop)) {
    parser_.header_limit(kResponseHeadMax);
    parser_.body_limit(body_max);
    parser_.skip(request_.method == "HEAD");  // its response announces a body and has none
  }

  void Begin(const std::string& socket, const std::string& target) {
    message_.method_string(request_.method);
    message_.target(target);
    message_.version(11);
    message_.set(http::field::host, "localhost");
    for (const auto& [name, value] : request_.headers)
      message_.insert(name, value);
    const std::string_view body =
        request_.shared_body.empty() ? request_.body : request_.shared_body.view();
    message_.body() = {body.data(), body.size()};
    message_.keep_alive(false);
    message_.prepare_payload();
    socket_.async_connect(asio::local::stream_protocol::endpoint(socket),
                          [self = shared_from_this()](const error_code& error) {
                            if (error) return self->Fail(error, "connect");
                            self->Write();
                          });
  }

  // Calls nothing any more.
  void Cancel() {
    done_ = nullptr;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void Write() {
    http::async_write(socket_, message_,
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (error) return self->Fail(error, "send");
                        self->Read();
                      });
  }

  // A length that is announced is checked here: Beast lets the parser's own limit pass for it.
  void Read() {
    http::async_read_header(socket_, buffer_, parser_,
                            [self = shared_from_this()](const error_code& error, std::size_t) {
                              if (error) return self->Fail(error, "receive");
                              if (self->parser_.is_done()) return self->End(self->TakeResponse());
                              const auto length = self->parser_.content_length();
                              if (length.value_or(0) > self->body_max_) return self->RefuseLength();
                              self->ReadBody();
                            });
  }

  void ReadBody() {
    http::async_read(socket_, buffer_, parser_,
                     [self = shared_from_this()](const error_code& error, std::size_t) {
                       if (error) return self->Fail(error, "receive");
                       self->End(self->TakeResponse());
                     });
  }

  HttpResponse TakeResponse() {
    auto& message = parser_.get();
    HttpResponse response;
    response.status = static_cast<int>(message.result_int());
    for (const auto& field : message)
      response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    response.body = std::move(message.body());
    return response;
  }

  void Fail(const error_code& error, const char* doing) {
    if (error == http::error::body_limit) return RefuseLength();
    if (error == http::error::header_limit) {
      return End(Error(Code::kResourceExhausted,
                       "the head of the response is longer than " + FormatBytes(kResponseHeadMax)));
    }
    const bool denied = error == asio::error::access_denied;
    End(Error(denied ? Code::kPermissionDenied : Code::kUnavailable,
              std::string(doing) + ": " + error.message()));
  }

  void RefuseLength() {
    End(Error(Code::kResourceExhausted, "the response is longer than " + FormatBytes(body_max_)));
  }

  void End(Result<HttpResponse> result) {
    const HttpCallback done = std::exchange(done_, nullptr);
    if (done) done(std::move(result));
  }

  const HttpRequest request_;
  const ByteCount body_max_;
  HttpCallback done_;  // null: it has ended
  StreamSocket socket_;
  http::request<http::span_body<const char>> message_;  // its body is that of request_
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
};

class UnixHttpClient final : public HttpClient {
 public:
  UnixHttpClient(EventLoop& loop, HttpClientOptions options)
      : loop_(loop), options_(std::move(options)), base_("unix:" + options_.unix_socket) {}
  ~UnixHttpClient() override {
    for (auto& [id, call] : calls_)
      call.exchange->Cancel();
  }
  UnixHttpClient(const UnixHttpClient&) = delete;
  UnixHttpClient& operator=(const UnixHttpClient&) = delete;

  void Send(HttpRequest request, Duration timeout, HttpCallback callback) override {
    const std::string url = request.url;
    const Status status = Admit(url);
    const std::uint64_t id = ++last_id_;
    if (!status.ok()) {
      refused_[id] = loop_.After(Duration::zero(), [this, id, status, done = std::move(callback)] {
        refused_.erase(id);
        done(Error(status));
      });
      return;
    }
    Call& call = calls_[id];
    call.callback = std::move(callback);
    call.timer = loop_.After(timeout, [this, id, url] {
      Finish(id, Error(Code::kDeadlineExceeded, url + ": no response in time"));
    });
    call.exchange = std::make_shared<UnixExchange>(
        loop_, std::move(request), options_.max_body_bytes,
        [this, id, url](Result<HttpResponse> result) {
          if (!result) result = Error(std::move(result).error().WithContext(url));
          Finish(id, std::move(result));
        });
    call.exchange->Begin(options_.unix_socket, url.substr(base_.size()));
  }

  std::unique_ptr<HttpStream> Stream(HttpRequest request, HttpStreamLimits /*limits*/,
                                     HttpStreamEvents events) override {
    auto refused = std::make_unique<RefusedStream>();
    refused->timer = loop_.After(
        Duration::zero(), [url = std::move(request.url), on_end = std::move(events.on_end)] {
          on_end({Code::kInvalidArgument, url + ": no streams by a Unix socket"});
        });
    return refused;
  }

 private:
  struct Call {
    HttpCallback callback;
    std::shared_ptr<UnixExchange> exchange;
    Timer timer;
  };
  struct RefusedStream final : HttpStream {
    Timer timer;
  };

  Status Admit(const std::string& url) const {
    if (calls_.size() >= options_.max_in_flight) {
      return {Code::kResourceExhausted,
              "too many HTTP requests are under way; wait for some to end"};
    }
    RETURN_IF_ERROR(ParseAddress(base_));  // the path may be too long
    if (!url.starts_with(base_ + "/")) {
      return {Code::kInvalidArgument, url + ": not a URL that begins with " + base_ + "/"};
    }
    // They would end the request line, and the rest be headers or a request of their own.
    if (std::ranges::any_of(url.substr(base_.size()), IsSpaceOrControl)) {
      return {Code::kInvalidArgument, url + ": encode spaces and control characters in a URL"};
    }
    return OkStatus();
  }

  void Finish(std::uint64_t id, Result<HttpResponse> result) {
    auto node = calls_.extract(id);
    if (node.empty()) return;
    Call& call = node.mapped();
    call.exchange->Cancel();
    call.timer.Cancel();
    call.callback(std::move(result));
  }

  EventLoop& loop_;
  const HttpClientOptions options_;
  const std::string base_;
  std::map<std::uint64_t, Call> calls_;     // in flight
  std::map<std::uint64_t, Timer> refused_;  // whose callbacks are due
  std::uint64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<HttpClient> MakeUnixHttpClient(EventLoop& loop, HttpClientOptions options) {
  return std::make_unique<UnixHttpClient>(loop, std::move(options));
}

}  // namespace optcache::net
