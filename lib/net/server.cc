#include "net/server.h"

#include <sys/socket.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "net/internal/event_loop_impl.h"
#include "net/internal/listener.h"
#include "net/internal/socket_connection.h"
#include "wire/codec.h"

namespace optcache::net {
namespace {

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
    visitor(MetricKind::kCounter, "optcache_net_refused_connections_total", labels,
            static_cast<double>(state_->refused));
    state_->traffic->Visit(visitor, labels);
  }

 private:
  // What connections that outlive the server still call.
  struct State : std::enable_shared_from_this<State> {
    State(EventLoop& event_loop, ServerOptions server_options, HandlerFactory factory)
        : loop(event_loop), options(std::move(server_options)), handlers(std::move(factory)) {}

    void OnAccepted(Accepted peer);
    Result<std::shared_ptr<ConnectionHandler>> OnHello(SocketConnection& connection,
                                                       const wire::Hello& hello);
    void StopSending(Duration grace, std::function<void()> done);
    void OnClosed(const SocketConnection& connection);
    void CloseAll(const Status& status);

    EventLoop& loop;
    ServerOptions options;
    HandlerFactory handlers;
    std::unordered_map<std::uint64_t, std::shared_ptr<SocketConnection>> connections;
    std::shared_ptr<TrafficCounters> traffic = std::make_shared<TrafficCounters>();
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;
    std::function<void()> on_stopped;
    Timer grace_timer;
  };

  std::shared_ptr<State> state_;  // shared with the hooks of its connections
  std::unique_ptr<Listener> listener_;
};

// Says why and hangs up, without a connection of its own.
void TurnAway(int fd, const std::string& why) {
  std::vector<std::byte> frame;
  wire::AppendFrame(0, wire::Refusal{.code = Code::kResourceExhausted, .message = why}, 0, frame);
  ::send(fd, frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void SocketServer::State::OnAccepted(Accepted peer) {
  if (connections.size() >= options.max_connections) {
    ++refused;
    TurnAway(peer.fd.get(), "this server has its " + std::to_string(options.max_connections) +
                                " connections; try again later");
    return;
  }
  ++accepted;
  const auto self = weak_from_this();
  auto connection = SocketConnection::Accepting(
      loop,
      {.limits = options.limits, .handshake_deadline = options.hello_deadline, .counters = traffic},
      peer.address, options.name,
      [self](SocketConnection& opened,
             const wire::Hello& hello) -> Result<std::shared_ptr<ConnectionHandler>> {
        const auto state = self.lock();
        if (state == nullptr) return Error(Code::kUnavailable, "the server stops");
        return state->OnHello(opened, hello);
      },
      [self](SocketConnection& closed) {
        if (const auto state = self.lock()) state->OnClosed(closed);
      });
  connections.emplace(connection->id(), connection);
  StreamSocket socket(ContextOf(loop));
  // The family matters only to Asio's own opening of sockets.
  socket.assign(asio::generic::stream_protocol(AF_UNSPEC, 0), peer.fd.Release());
  connection->Start(std::move(socket));
}

Result<std::shared_ptr<ConnectionHandler>> SocketServer::State::OnHello(
    SocketConnection& connection, const wire::Hello& hello) {
  if (options.authorize) {
    Status allowed = options.authorize(hello);
    if (!allowed.ok()) {
      ++refused;
      return Error(std::move(allowed));
    }
  }
  return handlers(connection);
}

void SocketServer::State::OnClosed(const SocketConnection& connection) {
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
