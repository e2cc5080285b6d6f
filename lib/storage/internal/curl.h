#pragma once

// HTTP transfers, many at a time on one thread. The only user of libcurl.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"

namespace optcache::storage::internal {

struct HttpResponse {
  // Not ok if no complete answer came: kUnavailable, kDeadlineExceeded, kCancelled, kDataLoss (the
  // connection closed within the body, or take_body said no), kPermissionDenied (certificate),
  // kInvalidArgument (address). The rest may be set all the same.
  Status transport;
  int http_status = 0;  // of the last answer, redirections followed; 0 if none came
  std::optional<ByteCount> content_length;
  std::string etag;
  std::string content_range;
  std::int64_t last_modified_s = 0;  // seconds since 1970; 0: not told
  Duration retry_after = Duration::zero();
  std::map<std::string, std::string> headers;  // those that were wanted and came
  std::string error_body;  // of an answer other than 2xx: its first kErrorBodyBytesMax bytes
};

struct HttpRequest {
  enum class Method { kGet, kHead, kPost, kPut };

  Method method = Method::kGet;
  std::string url;  // percent-encoded
  // "Name: value". Authorization goes to scheme, host and port of `url` alone: not along where a
  // redirection leads elsewhere.
  std::vector<std::string> headers;
  std::string body;  // of a POST or PUT
  bool follows_redirections = true;
  bool uses_proxies = true;  // those of the environment
  // Names of headers whose values the response shall have.
  std::vector<std::string> wanted_headers;
  std::string ca_file;  // certificates to trust, read again within a minute; empty: the system's
  // If set, told status and headers of a 2xx answer before the first piece of its body.
  std::move_only_function<void(const HttpResponse& head)> take_head;
  // Takes the body of a 2xx answer piece by piece; false ends the transfer. Not called any more
  // once the request's callback runs.
  std::move_only_function<bool(int http_status, ByteSpan piece)> take_body;
  // If set, asked now and then on the client's thread; true ends the transfer with kCancelled.
  std::move_only_function<bool()> unwanted;
  Deadline deadline;
  // Ends it with kUnavailable when no byte has come for this long, in whole seconds and a few more;
  // zero: only the deadline does.
  Duration silence_max = Duration::zero();
};

inline constexpr ByteCount kErrorBodyBytesMax = 64_KiB;

using HttpCallback = std::move_only_function<void(HttpResponse)>;

struct HttpClientOptions {
  unsigned concurrent_max = 64;
  size_t waiting_max = 1024;
  Duration connect_timeout = std::chrono::seconds(5);
};

struct TransferCounts {
  size_t waiting = 0;
  size_t running = 0;
};

// Keeps connections alive and runs callbacks on its own thread, one after the other; they must
// return soon. Follows up to five redirections, from https to https only, unless told not to.
// Thread-safe.
class HttpClient {
 public:
  // `clock` must outlive the client.
  HttpClient(HttpClientOptions options, const Clock& clock);
  ~HttpClient();  // as Shutdown
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // If ok, `done` runs exactly once; else never: kInvalidArgument if the address or a header has
  // line breaks or NUL bytes in it, with which it would be more than one; kResourceExhausted if too
  // many wait already, kCancelled after Shutdown.
  Status Send(HttpRequest request, HttpCallback done);

  // Ends everything with kCancelled; all callbacks have run when it returns.
  void Shutdown();

  TransferCounts counts() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace optcache::storage::internal
