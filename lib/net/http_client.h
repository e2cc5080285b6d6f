#pragma once

// HTTP requests that end in a callback on the event loop.

#include <functional>
#include <memory>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http.h"

namespace optcache::net {

using HttpCallback = std::function<void(Result<HttpResponse>)>;

// Used on the loop's thread only.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Calls `callback` once, never from within Send: with the response, whatever its status
  // (redirects are not followed), or kDeadlineExceeded after `timeout`, kUnavailable if there was
  // no connection or it broke, kResourceExhausted if the body passed the limit or too many requests
  // are in flight, kInvalidArgument for a URL that is none. Not after the client has died.
  virtual void Send(HttpRequest request, Duration timeout, HttpCallback callback) = 0;
};

struct HttpClientOptions {
  ByteCount max_body_bytes = 64_MiB;
  std::size_t max_in_flight = 64;
};

// Over cpprestsdk. `loop` outlives the client and its process-wide threads' last callback.
std::unique_ptr<HttpClient> MakeHttpClient(EventLoop& loop, HttpClientOptions options = {});

}  // namespace optcache::net
