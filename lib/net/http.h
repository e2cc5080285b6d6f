#pragma once

// A request and a response, for net/http_server.h and net/http_client.h.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared_bytes.h"
#include "net/http_body.h"
#include "net/peer.h"

namespace optcache::net {

// In the order in which they stand; names compare without case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Names of headers, and whatever else has no case.
bool SameWithoutCase(std::string_view a, std::string_view b);

// The first value of a header, if there is one.
std::optional<std::string_view> FindHeader(const HttpHeaders& headers, std::string_view name);

// What Content-Length says; nothing if it is not there or no number.
std::optional<std::uint64_t> ContentLength(const HttpHeaders& headers);

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // client: "http://host:port/path?query"; server: "/path?query"
  HttpHeaders headers;
  std::string body;
  PeerInfo peer;  // server: who asks
  // Client: instead of `body`, what is large and lies somewhere already.
  SharedBytes shared_body = {};
  // Server: has taken the body, as the head's check wanted it.
  std::shared_ptr<HttpBodySink> sink = nullptr;

  // The path without the query, as sent.
  std::string_view path() const;
  // The decoded value of `name` in the query, if it is there ("" for "?name").
  std::optional<std::string> query(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;
  std::string body;
  // Server: instead of `body`, for what many clients get at once.
  std::shared_ptr<const std::string> shared_body = nullptr;
  // Server: instead of `body`, for what does not lie in memory.
  std::shared_ptr<HttpBodySource> source = nullptr;

  static HttpResponse Text(int status, std::string body);
  static HttpResponse Json(int status, std::string body);
};

}  // namespace optcache::net
