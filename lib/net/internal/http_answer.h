#pragma once

#include <memory>
#include <string>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/span_body.hpp>

#include "base/bytes.h"
#include "net/http.h"
#include "net/http_body.h"

namespace optcache::net {

// An answer on its way. Not thread-safe.
class HttpAnswer {
 public:
  using Message = boost::beast::http::response<boost::beast::http::span_body<const char>>;
  // Of the request that it answers.
  struct Request {
    bool head = false;      // HEAD, whose answer has no body
    unsigned version = 11;  // of HTTP: 10 or 11
    bool keep_alive = false;
  };

  HttpAnswer(HttpResponse response, const Request& request);
  HttpAnswer(const HttpAnswer&) = delete;
  HttpAnswer& operator=(const HttpAnswer&) = delete;

  // The head, and the body unless it comes from a source.
  Message& message() { return message_; }

  // Null: the body is in the message.
  const std::shared_ptr<HttpBodySource>& source() const { return source_; }
  ByteCount unsent() const { return unsent_; }  // of the source
  void OnSent(ByteCount bytes) { unsent_ -= bytes; }
  // Nothing more is sent of it.
  void DropSource() { source_.reset(); }

 private:
  std::shared_ptr<const std::string> body_;
  std::shared_ptr<HttpBodySource> source_;
  ByteCount unsent_ = 0;
  Message message_;  // points into body_
};

}  // namespace optcache::net
