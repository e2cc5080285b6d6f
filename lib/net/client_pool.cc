// Keeps connections open: an address has slots, and each slot dials again when its connection ends.
//
//   Peer ─► Slot ─► Dial ─► Relay.OnOpen ─► open ─► Relay.OnClosed ─► backoff ─► Dial ...
//
// The idea: Get never waits, so all dialing is in the background. A Relay stands between a
// connection and the program's handler: it tells the slot first, and lets the handler see only
// connections that were open. A slot that dies detaches its relay, because OnClosed comes later.
//
// Invariants: a slot has one connection at a time, and counts in `open` exactly while `open_` is
// set. The backoff begins again only after a connection has lasted for healthy_after, so a peer
// that accepts and closes is not dialed in a loop.

#include "net/client_pool.h"

#include <functional>
#include <utility>
#include <vector>

#include "base/log.h"

namespace optcache::net {

struct ClientPool::Shared {
  EventLoop& loop;
  ClientPoolOptions options;
  std::shared_ptr<ConnectionHandler> handler;
  std::shared_ptr<TrafficCounters> traffic;
  std::shared_ptr<HandshakeFailures> tls_failures;
  std::uint64_t failed_attempts = 0;
  std::size_t open = 0;
};

namespace {

// Stands between a connection and the program's handler, and tells its slot how it goes. The slot
// outlives it or detaches it.
class Relay final : public ConnectionHandler {
 public:
  Relay(std::shared_ptr<ConnectionHandler> inner, std::function<void(Connection&)> on_open,
        std::function<void(const Status&)> on_closed)
      : inner_(std::move(inner)), on_open_(std::move(on_open)), on_closed_(std::move(on_closed)) {}

  void Detach() {
    on_open_ = nullptr;
    on_closed_ = nullptr;
  }

  void OnOpen(Connection& connection) override {
    opened_ = true;
    if (on_open_) on_open_(connection);
    inner_->OnOpen(connection);
  }
  void OnMessage(Connection& connection, std::uint32_t request_id, wire::Message message) override {
    inner_->OnMessage(connection, request_id, std::move(message));
  }
  PayloadSink OnPayloadStart(Connection& connection, std::uint32_t request_id,
                             const wire::Message& message, ByteCount length) override {
    return inner_->OnPayloadStart(connection, request_id, message, length);
  }
  void OnPayload(Connection& connection, std::uint32_t request_id, wire::Message message,
                 Status status) override {
    inner_->OnPayload(connection, request_id, std::move(message), std::move(status));
  }
  void OnClosed(Connection& connection, const Status& status) override {
    // The slot first: in its OnClosed the program sees the pool without this connection.
    if (on_closed_) on_closed_(status);
    if (opened_) inner_->OnClosed(connection, status);
  }

 private:
  std::shared_ptr<ConnectionHandler> inner_;
  std::function<void(Connection&)> on_open_;
  std::function<void(const Status&)> on_closed_;
  bool opened_ = false;
};

}  // namespace

// One connection that is kept: dialed, open, or waiting to be dialed again.
class ClientPool::Slot {
 public:
  Slot(std::shared_ptr<Shared> shared, std::string address, std::uint64_t seed)
      : shared_(std::move(shared)),
        address_(std::move(address)),
        backoff_(shared_->options.backoff, seed) {
    Connect();
  }
  ~Slot() {
    relay_->Detach();
    SetOpen(false);
    connection_->Close(OkStatus());
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  Connection* open() const { return open_ && !connection_->closed() ? connection_.get() : nullptr; }

 private:
  void Connect() {
    relay_ = std::make_shared<Relay>(
        shared_->handler,
        [this](Connection&) {
          failures_ = 0;
          SetOpen(true);
          healthy_ =
              shared_->loop.After(shared_->options.healthy_after, [this] { backoff_.Reset(); });
        },
        [this](const Status& status) { OnClosed(status); });
    DialOptions options = shared_->options.dial;
    options.counters = shared_->traffic;
    options.tls_failures = shared_->tls_failures;
    connection_ = Dial(shared_->loop, address_, std::move(options), relay_);
  }

  void OnClosed(const Status& status) {
    if (!open_) {
      ++shared_->failed_attempts;
      if (failures_++ == 0) {
        Log(LogLevel::kWarning, "peer is not reachable; trying again in the background",
            {{"address", address_}, {"error", status.ToString()}});
      }
    }
    SetOpen(false);
    healthy_.Cancel();
    retry_ = shared_->loop.After(backoff_.Next(), [this] { Connect(); });
  }

  void SetOpen(bool open) {
    if (open == open_) return;
    open_ = open;
    if (open) {
      ++shared_->open;
    } else {
      --shared_->open;
    }
  }

  std::shared_ptr<Shared> shared_;
  std::string address_;
  Backoff backoff_;
  std::shared_ptr<Relay> relay_;
  std::shared_ptr<Connection> connection_;
  Timer retry_;
  Timer healthy_;
  bool open_ = false;
  int failures_ = 0;
};

// The connections to one address.
class ClientPool::Peer {
 public:
  Peer(const std::shared_ptr<Shared>& shared, const std::string& address) {
    for (std::size_t i = 0; i < shared->options.connections_per_address; ++i) {
      const std::uint64_t seed =
          Random::Mix(shared->options.seed + std::hash<std::string>()(address) + i);
      slots_.push_back(std::make_unique<Slot>(shared, address, seed));
    }
  }

  Connection* Get() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      next_ = (next_ + 1) % slots_.size();
      if (Connection* connection = slots_[next_]->open()) return connection;
    }
    return nullptr;
  }

 private:
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t next_ = 0;
};

ClientPool::ClientPool(EventLoop& loop, ClientPoolOptions options,
                       std::shared_ptr<ConnectionHandler> handler)
    : shared_(
          std::make_shared<Shared>(Shared{.loop = loop,
                                          .options = std::move(options),
                                          .handler = std::move(handler),
                                          .traffic = std::make_shared<TrafficCounters>(),
                                          .tls_failures = std::make_shared<HandshakeFailures>()})) {
}

ClientPool::~ClientPool() = default;

void ClientPool::Keep(const std::string& address) {
  auto& peer = peers_[address];
  if (peer == nullptr) peer = std::make_unique<Peer>(shared_, address);
}

void ClientPool::Drop(const std::string& address) {
  peers_.erase(address);
}

Connection* ClientPool::Get(const std::string& address) {
  Keep(address);
  return peers_.at(address)->Get();
}

void ClientPool::VisitCounters(const CounterVisitor& visitor) const {
  const MetricLabels labels = {{"side", shared_->options.label}};
  visitor(MetricKind::kGauge, "optcache_net_open_connections", labels,
          static_cast<double>(shared_->open));
  visitor(MetricKind::kCounter, "optcache_net_failed_dials_total", labels,
          static_cast<double>(shared_->failed_attempts));
  shared_->traffic->Visit(visitor, labels);
  if (shared_->options.dial.tls != nullptr) {
    shared_->tls_failures->Visit(visitor, {{"server", shared_->options.label}});
  }
}

}  // namespace optcache::net
