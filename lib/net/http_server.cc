#include "net/http_server.h"

#include <sys/socket.h>

#include <string_view>
#include <utility>

#include "base/log.h"
#include "net/internal/event_loop_impl.h"
#include "net/internal/http_session.h"
#include "net/internal/listener.h"

namespace optcache::net {
namespace {

constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

// A source may keep a quarter of the places where another source wants one.
constexpr std::size_t kShares = 4;

class BeastServer final : public HttpServer {
 public:
  BeastServer(EventLoop& loop, std::unique_ptr<Listener> listener, HttpServerOptions options,
              HttpHandler handler)
      : state_(std::make_shared<HttpServerState>(loop, std::move(options), std::move(handler))),
        listener_(std::move(listener)) {
    listener_->Start([this](Accepted peer) { OnAccepted(std::move(peer)); });
  }

  ~BeastServer() override {
    listener_->Stop();
    state_->on_stopped = nullptr;
    CloseAll();
    state_->sessions.clear();  // Each lives on until its last operation has ended.
  }

  std::uint16_t port() const override { return listener_->address().port; }

  void Stop(Duration grace, std::function<void()> done) override {
    listener_->Stop();
    if (state_->sessions.empty()) return state_->loop.Post(std::move(done));
    state_->on_stopped = std::move(done);
    grace_timer_ = state_->loop.After(grace, [this] { CloseAll(); });
    for (const auto& [key, session] : state_->sessions)
      session->CloseIfIdle();
  }

  void VisitCounters(const CounterVisitor& visitor) const override {
    const MetricLabels labels = {{"server", state_->options.label}};
    visitor(MetricKind::kGauge, "optcache_http_open_connections", labels,
            static_cast<double>(state_->sessions.size()));
    visitor(MetricKind::kCounter, "optcache_http_refused_connections_total", labels,
            static_cast<double>(state_->refused_connections));
    for (const auto& [status, count] : state_->responses) {
      MetricLabels with_code = labels;
      with_code.emplace_back("code", std::to_string(status));
      visitor(MetricKind::kCounter, "optcache_http_responses_total", with_code,
              static_cast<double>(count));
    }
    if (state_->options.tls == nullptr) return;
    state_->handshake_failures.Visit(visitor, labels);
    visitor(MetricKind::kCounter, "optcache_tls_delayed_handshakes_total", labels,
            static_cast<double>(state_->handshakes.delayed()));
  }

 private:
  void CloseAll() {
    for (const auto& [key, session] : state_->sessions)
      session->Close();
  }

  // A source that has more than its share loses one to all others, whatever is done on it. Without
  // such a source one that waits goes. Null: none.
  HttpSession* WhatGivesWayTo(const std::string& source) const {
    const std::string most = state_->by_source.Most().value_or("");
    const bool has_too_many =
        !most.empty() && state_->by_source.size(most) > state_->options.max_connections / kShares;
    const auto waits = has_too_many ? state_->waiting_by_source.Oldest(most)
                                    : state_->waiting_by_source.OldestOfMost();
    if (waits) return state_->waiting.at(*waits);
    if (!has_too_many || most == source) return nullptr;
    return state_->sessions.at(*state_->by_source.Oldest(most)).get();
  }

  void LogThatItIsFull() {
    const auto not_logged = state_->full_log.Pass(SystemClock().Now());
    if (!not_logged) return;
    const std::string most = state_->by_source.Most().value_or("");
    Log(LogLevel::kWarning, "an HTTP server has all connections that it takes",
        {{"server", state_->options.label},
         {"connections", state_->options.max_connections},
         {"source_of_most", most},
         {"connections_of_it", state_->by_source.size(most)},
         {"not_logged", *not_logged}});
  }

  void OnAccepted(Accepted peer) {
    const TlsContext* const tls = state_->options.tls.get();
    if (tls != nullptr && !tls->ready()) {
      state_->handshake_failures.Count(HandshakeFailure::kNotReady);
      return;
    }
    if (state_->by_source.size() >= state_->options.max_connections) {
      ++state_->refused_connections;
      LogThatItIsFull();
      HttpSession* const goes = WhatGivesWayTo(SourceOf(peer.address));
      if (goes == nullptr) {
        if (tls != nullptr) return;
        ::send(peer.fd.get(), kTooMany.data(), kTooMany.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        return;
      }
      goes->Close();
    }
    StreamSocket socket(ContextOf(state_->loop));
    socket.assign(asio::generic::stream_protocol(AF_UNSPEC, 0), peer.fd.Release());
    std::make_shared<HttpSession>(state_, std::move(socket), std::move(peer.address))->Start();
  }

  std::shared_ptr<HttpServerState> state_;  // shared with sessions, which may outlive the server
  std::unique_ptr<Listener> listener_;
  Timer grace_timer_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> ListenHttp(EventLoop& loop, const std::string& address,
                                               HttpServerOptions options, HttpHandler handler) {
  ASSIGN_OR_RETURN(auto listener, Listener::Open(loop, address));
  return std::make_unique<BeastServer>(loop, std::move(listener), std::move(options),
                                       std::move(handler));
}

}  // namespace optcache::net
