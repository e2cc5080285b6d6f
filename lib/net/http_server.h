#pragma once

// HTTP/1.1 for metrics, health and the control API: small, bounded, on the program's event loop.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http.h"
#include "net/tls.h"

namespace optcache::net {

// What is to become of a request that has a body, now that its head has come.
struct HttpHeadRuling {
  std::optional<HttpResponse> refusal;   // the answer; the body is not read
  std::shared_ptr<void> hold = nullptr;  // kept until the answer is sent or the client has gone
  // Where the body goes, piece by piece; null: into the request.
  std::shared_ptr<HttpBodySink> sink = nullptr;
};
// Calls `decide` once, now or later, on the loop's thread; `head` has no body yet.
using HttpHeadCheck =
    std::function<void(const HttpRequest& head, std::function<void(HttpHeadRuling)> decide)>;

struct HttpServerOptions {
  std::string label = "http";  // value of the metrics' label "server"
  std::uint32_t max_header_bytes = 16U << 10U;
  ByteCount max_body_bytes = 8_MiB;
  // The same for clients that have shown no certificate. Nothing: no difference.
  std::optional<ByteCount> max_body_bytes_unproven;
  // Asked before a body is read, within response_deadline. Empty: all are.
  HttpHeadCheck check_head;
  std::size_t max_connections = 256;
  // For one whole request from its first byte, for one whole response, and between two requests.
  Duration request_deadline = std::chrono::seconds(10);
  Duration write_deadline = std::chrono::seconds(30);
  // Bodies that go to a sink or come from a source have more time: as if so much came in a second.
  // A client that takes nothing of a source for write_deadline is closed all the same. The time in
  // which the source is read does not count; each of its pieces has response_deadline.
  ByteCount slowest = 1_MiB;
  // If set, an answer has as much time as its client takes for it: a client is closed only when it
  // has taken no byte for this long, which is seen within a quarter more. So is a client that has
  // bytes of its answer still to take while the connection waits for a request or for its end.
  std::optional<Duration> stall_deadline;
  // Where those are written and read: calls `job` on a thread that may block, then `end` on the
  // loop's; an error: not now. Empty: right here.
  std::function<Status(std::function<void()> job, std::function<void()> end)> blocking;
  Duration idle_deadline = std::chrono::seconds(60);
  // For the handler to respond (long polls included); then the client gets 503.
  Duration response_deadline = std::chrono::minutes(5);
  // What the server answers by itself: to what is no request, or takes too long. Empty: plain text.
  std::function<HttpResponse(int status, std::string why)> own_answer;
  // HTTPS with this; null: HTTP. Who has not shaken hands by the deadline, or cannot, is closed and
  // counted by reason. So is who has waited as long for the turn of its handshake.
  std::shared_ptr<const TlsContext> tls;
  Duration handshake_deadline = std::chrono::seconds(5);
  HandshakePace handshakes;
};

// The way back to one request's client. Call it once, now or later, on the loop's thread; further
// calls and calls after the client has gone do nothing. The last copy to die without a call answers
// 500.
class HttpResponder {
 public:
  class Exchange;
  explicit HttpResponder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  void operator()(HttpResponse response) const;
  // Nobody waits for the answer any more.
  bool abandoned() const;

 private:
  std::shared_ptr<Exchange> exchange_;
};

using HttpHandler = std::function<void(HttpRequest, HttpResponder)>;

// Used on the loop's thread only. The destructor closes all connections.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The TCP port, also when 0 was asked for.
  virtual std::uint16_t port() const = 0;

  // Accepts no more, closes the connections on which nothing is asked and each other one when its
  // answer is sent, at latest after `grace`; then calls `done`, never from within Stop.
  virtual void Stop(Duration grace, std::function<void()> done) = 0;

  virtual void VisitCounters(const CounterVisitor& visitor) const = 0;

 protected:
  HttpServer() = default;
};

// `address` and errors as in Listen (net/server.h). Too long a header is answered 431, a body 413,
// what is not HTTP 400. A client beyond max_connections takes the place of a connection that waits
// for a request or for its end: of the source that has most of these, the oldest. If a source has
// more than a quarter of all connections, it loses one instead: the one that waits longest, or for
// a client of another source the oldest in any case. If none gives way, the client is answered 503.
// Source: an IP address.
Result<std::unique_ptr<HttpServer>> ListenHttp(EventLoop& loop, const std::string& address,
                                               HttpServerOptions options, HttpHandler handler);

}  // namespace optcache::net
