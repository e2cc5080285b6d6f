// Accepts connections and finds out who they are, before any handler sees them.
//
//   Listener ─► MakeRoom ─► [HandshakeGate] ─► SocketConnection ─► OnHello ─► authorize ─► Admit
//               └─ `silent` until Hello ────────────────────────────┘   └─ `undecided` ──┘
//
// The idea: a peer that has proved nothing must not keep others out. While it is silent, and while
// it is undecided, it counts against limits, in all and of its source. If there are too many silent
// peers, one of them goes: the one that has been silent longest, of the source that connects if it
// has too many, or else of the source that has most. If there are too many undecided peers, the
// next one is refused. Handshakes cost processor time before anything is known, so they begin at a
// pace.
//
// Invariants: a connection is in `connections` from its acceptance to OnClosed, and in `silent` or
// `undecided` only before its decision, which comes once (Decide). The state is shared with hooks
// that may be called after the server has died; they find it gone and close.

#include "net/server.h"

#include <sys/socket.h>

#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/log_limit.h"
#include "net/internal/connections_by_source.h"
#include "net/internal/event_loop_impl.h"
#include "net/internal/handshake_gate.h"
#include "net/internal/listener.h"
#include "net/internal/socket_connection.h"
#include "wire/codec.h"

namespace optcache::net {
namespace {

// Why a connection was turned away; the metric's label "reason".
enum class Reason { kLimit, kVersion, kCertificate, kBusy, kLate, kDenied, kUnchecked, kUnserved };
constexpr std::array<const char*, 8> kReasons = {"limit", "version", "certificate", "busy",
                                                 "late",  "denied",  "unchecked",   "unserved"};

class SocketServer final : public Server {
 public:
  SocketServer(EventLoop& loop, std::unique_ptr<Listener> listener, ServerOptions options,
               HandlerFactory handlers)
      : state_(std::make_shared<State>(loop, std::move(options), std::move(handlers))),
        listener_(std::move(listener)) {
    listener_->Start(
        [state = state_.get()](Accepted accepted) { state->OnAccepted(std::move(accepted)); });
  }

  ~SocketServer() override {
    listener_->Stop();
    state_->CloseAll(Status(Code::kCancelled, "the server stops"));
  }

  std::uint16_t port() const override { return listener_->address().port; }
  std::string address() const override { return FormatAddress(listener_->address()); }
  std::size_t open_connections() const override { return state_->connections.size(); }

  void Stop(Duration grace, std::function<void()> done) override {
    listener_->Stop();
    state_->StopSending(grace, std::move(done));
  }

  void VisitCounters(const CounterVisitor& visitor) const override {
    const MetricLabels labels = {{"side", "server"}};
    visitor(MetricKind::kGauge, "optcache_net_open_connections", labels,
            static_cast<double>(state_->connections.size()));
    visitor(MetricKind::kCounter, "optcache_net_accepted_connections_total", labels,
            static_cast<double>(state_->accepted));
    for (std::size_t i = 0; i < kReasons.size(); ++i) {
      visitor(MetricKind::kCounter, "optcache_net_refused_connections_total",
              {{"side", "server"}, {"reason", kReasons.at(i)}},
              static_cast<double>(state_->refused.at(i)));
    }
    if (state_->options.tls != nullptr) {
      const MetricLabels server = {{"server", "wire"}};
      state_->tls_failures->Visit(visitor, server);
      visitor(MetricKind::kCounter, "optcache_tls_delayed_handshakes_total", server,
              static_cast<double>(state_->handshakes.delayed()));
    }
    state_->traffic->Visit(visitor, labels);
  }

 private:
  // What connections that outlive the server still call.
  struct State : std::enable_shared_from_this<State> {
    State(EventLoop& event_loop, ServerOptions server_options, HandlerFactory factory)
        : loop(event_loop),
          options(std::move(server_options)),
          handlers(std::move(factory)),
          handshakes(loop, options.handshakes) {}

    void OnAccepted(Accepted peer);
    void LogLimitReached(const std::string& source);
    bool MakeRoom(const std::string& source);
    void Begin(SocketConnection& connection, UniqueFd fd);
    bool IsFull(const std::string& source) const;
    void OnHello(SocketConnection& connection, const wire::Hello& hello, const Status& versions);
    void Decide(std::uint64_t id, Reason reason, Status status);
    void Admit(SocketConnection& connection);
    void Refuse(SocketConnection& connection, Reason reason, Status status);
    void StopSending(Duration grace, std::function<void()> done);
    void OnClosed(const SocketConnection& connection);
    void CloseAll(const Status& status);

    EventLoop& loop;
    ServerOptions options;
    HandlerFactory handlers;
    std::unordered_map<std::uint64_t, std::shared_ptr<SocketConnection>> connections;
    HandshakeGate handshakes;
    ConnectionsBySource silent;  // those whose Hello has not come
    // Those whose authorize has not decided yet, and until when it may.
    std::unordered_map<std::uint64_t, Timer> undecided;
    ConnectionsBySource undecided_by_source;
    std::shared_ptr<TrafficCounters> traffic = std::make_shared<TrafficCounters>();
    std::shared_ptr<HandshakeFailures> tls_failures = std::make_shared<HandshakeFailures>();
    std::uint64_t accepted = 0;
    std::array<std::uint64_t, kReasons.size()> refused{};
    std::array<LogLimit, kReasons.size()> refusal_logs;
    std::function<void()> on_stopped;
    Timer grace_timer;
  };

  std::shared_ptr<State> state_;  // shared with the hooks of its connections
  std::unique_ptr<Listener> listener_;
};

// Says why and hangs up, without a connection of its own.
void TurnAway(int fd, const std::string& why) {
  std::vector<std::byte> frame;
  const wire::Refusal refusal{.code = Code::kResourceExhausted, .message = why};
  if (!wire::AppendFrame(0, refusal, 0, frame).ok()) return;
  ::send(fd, frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

void SocketServer::State::LogLimitReached(const std::string& source) {
  const auto not_logged =
      refusal_logs.at(static_cast<std::size_t>(Reason::kLimit)).Pass(SystemClock().Now());
  if (!not_logged) return;
  Log(LogLevel::kWarning, "too many connections",
      {{"source", source},
       {"silent_connections_of_it", silent.size(source)},
       {"connections", connections.size()},
       {"not_logged", *not_logged}});
}

// For one more connection, at the cost of one that is silent: one of the same source where that has
// its share, else one of the source that has most.
bool SocketServer::State::MakeRoom(const std::string& source) {
  std::optional<std::uint64_t> goes;
  if (!source.empty() && silent.size(source) >= options.max_silent_of_source) {
    goes = silent.Oldest(source);
  } else if (connections.size() >= options.max_connections || silent.size() >= options.max_silent) {
    goes = silent.OldestOfMost();
    if (!goes) return false;
  } else {
    return true;
  }
  const auto longest = connections.at(*goes);
  const std::string its_source = SourceOf(longest->address());
  LogLimitReached(its_source);
  silent.Remove(its_source, *goes);
  handshakes.Leave(its_source, *goes);
  ++refused.at(static_cast<std::size_t>(Reason::kLimit));
  longest->Close(Status(Code::kResourceExhausted, "others came before this peer's Hello"));
  return true;
}

void SocketServer::State::OnAccepted(Accepted peer) {
  const std::string source = SourceOf(peer.address);
  if (!MakeRoom(source)) {
    LogLimitReached(source);
    ++refused.at(static_cast<std::size_t>(Reason::kLimit));
    if (options.tls == nullptr) {  // Else it would have to come by TLS: not worth the handshake.
      TurnAway(peer.fd.get(), "this server has its " + std::to_string(options.max_connections) +
                                  " connections; try again later");
    }
    return;
  }
  ++accepted;
  const auto self = weak_from_this();
  auto connection = SocketConnection::Accepting(
      loop,
      {.limits = options.limits,
       .handshake_deadline = options.hello_deadline,
       .versions = options.versions,
       .bulk = options.bulk,
       .counters = traffic,
       .tls_failures = tls_failures},
      peer.address, options.name,
      [self](SocketConnection& opened, const wire::Hello& hello, const Status& versions) {
        if (const auto state = self.lock()) {
          state->OnHello(opened, hello, versions);
        } else {
          opened.Close(Status(Code::kUnavailable, "the server stops"));
        }
      },
      [self](SocketConnection& closed) {
        if (const auto state = self.lock()) state->OnClosed(closed);
      });
  connections.emplace(connection->id(), connection);
  silent.Add(source, connection->id());
  if (options.tls == nullptr) return Begin(*connection, std::move(peer.fd));
  // The gate keeps the timer for as long as the connection waits.
  Timer limit = loop.After(options.hello_deadline, [this, connection] {
    tls_failures->Count(HandshakeFailure::kTimeout);
    connection->Close(Status(Code::kDeadlineExceeded,
                             "TLS with " + connection->address() + ": its turn did not come"));
  });
  handshakes.Enter(source, connection->id(),
                   [this, connection, fd = std::move(peer.fd), limit = std::move(limit)]() mutable {
                     limit.Cancel();
                     Begin(*connection, std::move(fd));
                   });
}

void SocketServer::State::Begin(SocketConnection& connection, UniqueFd fd) {
  StreamSocket socket(ContextOf(loop));
  // The family matters only to Asio's own opening of sockets.
  socket.assign(asio::generic::stream_protocol(AF_UNSPEC, 0), fd.Release());
  connection.Start(std::move(socket), options.tls.get(), "");
}

bool SocketServer::State::IsFull(const std::string& source) const {
  return undecided.size() >= options.max_undecided ||
         (!source.empty() && undecided_by_source.size(source) >= options.max_undecided_of_source);
}

void SocketServer::State::OnHello(SocketConnection& connection, const wire::Hello& hello,
                                  const Status& versions) {
  const std::string source = SourceOf(connection.address());
  silent.Remove(source, connection.id());
  if (!versions.ok()) return Refuse(connection, Reason::kVersion, versions);
  const PeerInfo& peer = connection.peer();
  if (options.tls != nullptr && hello.role == wire::Role::kNode && !peer.Is(options.node_name)) {
    return Refuse(
        connection, Reason::kCertificate,
        Status(Code::kPermissionDenied,
               "a node shows a certificate for '" + options.node_name + "'; this peer's " +
                   (peer.dns_names.empty() ? "is missing" : "is for " + Joined(peer.dns_names))));
  }
  if (!options.authorize) return Admit(connection);
  if (IsFull(source)) {
    return Refuse(connection, Reason::kBusy,
                  Status(Code::kResourceExhausted, std::to_string(undecided.size()) +
                                                       " peers wait to be checked already; try "
                                                       "again later"));
  }
  const std::uint64_t id = connection.id();
  undecided_by_source.Add(source, id);
  undecided[id] = loop.After(options.authorize_deadline, [this, id] {
    Decide(id, Reason::kLate,
           Status(Code::kDeadlineExceeded, "this peer could not be checked in time; try again"));
  });
  options.authorize(hello, peer, [self = weak_from_this(), id](Status status) {
    const auto state = self.lock();
    if (state == nullptr) return;
    const bool denied = status.code() == Code::kPermissionDenied;
    state->Decide(id, denied ? Reason::kDenied : Reason::kUnchecked, std::move(status));
  });
}

void SocketServer::State::Decide(std::uint64_t id, Reason reason, Status status) {
  if (undecided.erase(id) == 0) return;  // Decided before, or the peer has gone.
  const auto connection = connections.at(id);
  undecided_by_source.Remove(SourceOf(connection->address()), id);
  if (connection->closed()) return;
  if (status.ok()) {
    Admit(*connection);
  } else {
    Refuse(*connection, reason, std::move(status));
  }
}

void SocketServer::State::Admit(SocketConnection& connection) {
  auto handler = handlers(connection);
  if (handler == nullptr) {
    return Refuse(connection, Reason::kUnserved,
                  Status(Code::kPermissionDenied, "this server does not serve this peer"));
  }
  connection.Admit(std::move(handler));
}

void SocketServer::State::Refuse(SocketConnection& connection, Reason reason, Status status) {
  const auto kind = static_cast<std::size_t>(reason);
  ++refused.at(kind);
  if (const auto not_logged = refusal_logs.at(kind).Pass(SystemClock().Now())) {
    Log(LogLevel::kWarning, "peer refused",
        {{"address", connection.address()},
         {"peer", connection.peer_name()},
         {"role", connection.peer_role() == wire::Role::kNode ? "node" : "sidecar"},
         {"reason", kReasons.at(kind)},
         {"error", status.ToString()},
         {"not_logged", *not_logged}});
  }
  connection.Close(std::move(status));
}

void SocketServer::State::OnClosed(const SocketConnection& connection) {
  const std::string source = SourceOf(connection.address());
  silent.Remove(source, connection.id());
  handshakes.Leave(source, connection.id());
  undecided.erase(connection.id());
  undecided_by_source.Remove(source, connection.id());
  connections.erase(connection.id());
  if (connections.empty() && on_stopped) {
    grace_timer.Cancel();
    std::exchange(on_stopped, nullptr)();
  }
}

void SocketServer::State::StopSending(Duration grace, std::function<void()> done) {
  if (connections.empty()) return loop.Post(std::move(done));
  on_stopped = std::move(done);
  grace_timer =
      loop.After(grace, [this] { CloseAll(Status(Code::kUnavailable, "the server stops")); });
  for (const auto& [id, connection] : connections)
    connection->CloseWhenSent();
}

void SocketServer::State::CloseAll(const Status& status) {
  for (const auto& [id, connection] : connections)
    connection->Close(status);
}

}  // namespace

Authorize Immediately(std::function<Status(const wire::Hello&, const PeerInfo&)> check) {
  return [check = std::move(check)](const wire::Hello& hello, const PeerInfo& peer,
                                    const std::function<void(Status)>& decide) {
    decide(check(hello, peer));
  };
}

Result<std::unique_ptr<Server>> Listen(EventLoop& loop, const std::string& address,
                                       ServerOptions options, HandlerFactory handlers) {
  ASSIGN_OR_RETURN(auto listener, Listener::Open(loop, address));
  return std::make_unique<SocketServer>(loop, std::move(listener), std::move(options),
                                        std::move(handlers));
}

Result<std::unique_ptr<Server>> Listen(EventLoop& loop, const std::string& address,
                                       ServerOptions options,
                                       std::shared_ptr<ConnectionHandler> handler) {
  return Listen(loop, address, std::move(options),
                HandlerFactory([handler](Connection&) { return handler; }));
}

}  // namespace optcache::net
