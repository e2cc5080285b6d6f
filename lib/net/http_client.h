#pragma once

// HTTP requests that end in a callback on the event loop.

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http.h"
#include "net/tls.h"

namespace optcache::net {

using HttpCallback = std::function<void(Result<HttpResponse>)>;

// What a stream tells, on the loop's thread: on_response once, on_bytes for what arrives, in order
// and in pieces of any size, and on_end once. Ok: the server ended the response; else codes as in
// HttpClient::Send.
struct HttpStreamEvents {
  std::function<void(int status, const HttpHeaders& headers)> on_response;
  std::function<void(ByteSpan bytes)> on_bytes;
  // Instead of on_bytes, for who hands them to another thread: the next come when `go_on` has been
  // called, on the loop's thread, at any time.
  std::function<void(std::string bytes, std::function<void()> go_on)> on_piece = nullptr;
  std::function<void(const Status& status)> on_end;
};

struct HttpStreamLimits {
  // For the head of the response, and then between two pieces of its body; on_end with
  // kDeadlineExceeded.
  Duration response_deadline = std::chrono::seconds(30);
  Duration idle_deadline = std::chrono::minutes(2);
};

// A response under way. Destroying it ends the stream: nothing is called any more, and the
// connection is closed. That may be done from within its own events.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

 protected:
  HttpStream() = default;
};

// Used on the loop's thread only.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Calls `callback` once, never from within Send: with the response, whatever its status
  // (redirects are not followed), or kDeadlineExceeded after `timeout`, kUnavailable if there was
  // no connection or it broke, kPermissionDenied if the server's certificate is not to be trusted
  // or its Unix socket is another user's, kResourceExhausted if the response passed a limit or too
  // many requests are in flight, kInvalidArgument for a URL that is none. Not after the client has
  // died, which may happen in `callback`.
  //
  // What went over a kept connection that the server had closed meanwhile is sent again over a new
  // one; a POST too, if the server closed without an answer.
  virtual void Send(HttpRequest request, Duration timeout, HttpCallback callback) = 0;

  // For responses that go on (a Kubernetes watch): tells what comes when it comes. The next piece
  // is read from the socket when on_bytes has returned. No event comes from within Stream, nor
  // after the client has died.
  virtual std::unique_ptr<HttpStream> Stream(HttpRequest request, HttpStreamLimits limits,
                                             HttpStreamEvents events) = 0;
};

struct HttpClientOptions {
  ByteCount max_body_bytes = 64_MiB;
  std::size_t max_in_flight = 64;  // streams are counted apart
  std::size_t max_streams = 64;
  // For https. Its material is asked for at each request: connections made with another are used no
  // more. Null: the system's CAs, no certificate of our own.
  std::shared_ptr<const TlsContext> tls;
  // The DNS name that the server's certificate must have, whatever the URL says, also sent as SNI
  // and Host. Empty: the URL's host.
  std::string server_name;
  // Path of a Unix socket: all requests go there, their URLs are "unix:PATH/path?query", and there
  // are no streams. Empty: http:// and https:// by TCP.
  std::string unix_socket;
};

// By TCP it is cpprestsdk. `loop` outlives the client and its process-wide thread's last callback.
std::unique_ptr<HttpClient> MakeHttpClient(EventLoop& loop, HttpClientOptions options = {});

}  // namespace optcache::net
