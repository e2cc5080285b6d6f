#include "sidecar/fetch/node_link.h"

#include <utility>
#include <variant>

#include "base/files.h"
#include "base/log.h"
#include "net/connection.h"
#include "sidecar/ports/retry_seed.h"

namespace optcache::sidecar {
namespace {

// A node that does not take what is sent to it holds up memory that trainers need.
constexpr auto kStallDeadline = std::chrono::seconds(3);

}  // namespace

class NodeLink::Handler final : public net::ConnectionHandler {
 public:
  explicit Handler(NodeListener& listener) : listener_(&listener) {}

  // The listener hears no more; late events of closing connections go nowhere.
  void Mute() {
    listener_ = nullptr;
    connection_ = nullptr;
  }
  net::Connection* connection() const { return connection_; }

  void OnOpen(net::Connection& connection) override {
    if (listener_ == nullptr) return;
    connection_ = &connection;
    Log(LogLevel::kInfo, "node connected",
        {{"node", connection.peer_name()}, {"address", connection.address()}});
    listener_->OnNodeUp();
  }

  void OnMessage(net::Connection& connection, std::uint32_t request_id,
                 wire::Message message) override {
    if (listener_ == nullptr || &connection != connection_) return;
    if (const auto* reply = std::get_if<wire::SampleReply>(&message)) {
      listener_->OnAnswer(request_id, *reply);
    } else if (const auto* stored = std::get_if<wire::StoreReply>(&message)) {
      listener_->OnStored(*stored);
    } else if (const auto* share = std::get_if<wire::StoreShare>(&message)) {
      listener_->OnShare(*share);
    }
  }

  net::PayloadSink OnPayloadStart(net::Connection& connection, std::uint32_t request_id,
                                  const wire::Message& message, ByteCount length) override {
    const auto* reply = std::get_if<wire::SampleReply>(&message);
    if (listener_ == nullptr || &connection != connection_ || reply == nullptr) return {};
    BufferRef buffer = listener_->OnPayloadStart(request_id, *reply, length);
    if (buffer == nullptr) return {};
    return {.destination = buffer->bytes(), .owner = std::move(buffer)};
  }

  void OnPayload(net::Connection& connection, std::uint32_t request_id, wire::Message message,
                 Status status) override {
    const auto* reply = std::get_if<wire::SampleReply>(&message);
    if (listener_ == nullptr || &connection != connection_ || reply == nullptr) return;
    listener_->OnPayload(request_id, *reply, status);
  }

  void OnClosed(net::Connection& connection, const Status& status) override {
    if (&connection != connection_) return;
    connection_ = nullptr;
    Log(LogLevel::kWarning, "node lost, samples come from the store",
        {{"address", connection.address()},
         {"reason", status.ok() ? "the node closed the connection" : status.ToString()}});
    if (listener_ != nullptr) listener_->OnNodeLost();
  }

 private:
  NodeListener* listener_;
  net::Connection* connection_ = nullptr;  // null while there is none
};

NodeLink::~NodeLink() {
  Close();
}

net::ClientPoolOptions PoolOptionsOf(const NodeLinkOptions& options) {
  net::ClientPoolOptions pool;
  pool.dial.hello = {.role = wire::Role::kSidecar, .name = options.name};
  pool.dial.tls = options.tls;
  pool.dial.bulk = options.bulk;
  if (!options.token_file.empty()) {
    pool.dial.token = [file = options.token_file] { return ReadToken(file); };
  }
  pool.dial.limits.stall_deadline = kStallDeadline;
  pool.seed = RetrySeedOf(options.name);
  pool.label = "node";
  return pool;
}

void NodeLink::Open(NodeListener& listener) {
  handler_ = std::make_shared<Handler>(listener);
  pool_ = std::make_unique<net::ClientPool>(loop_, PoolOptionsOf(options_), handler_);
  pool_->Keep(options_.address);
}

void NodeLink::Close() {
  if (handler_) handler_->Mute();
  pool_.reset();
}

bool NodeLink::connected() const {
  return handler_ && handler_->connection() != nullptr && !handler_->connection()->closed();
}

void NodeLink::Send(std::uint32_t request, const wire::Message& message) {
  if (connected()) handler_->connection()->Send(request, message);
}

void NodeLink::Put(const wire::Put& put, BufferRef payload) {
  if (!connected()) return;
  const ByteSpan bytes = payload->bytes();
  handler_->connection()->Send(0, put, bytes, std::move(payload));
}

void NodeLink::Drop(Status why) {
  if (connected()) handler_->connection()->Close(std::move(why));
}

NodeTraffic NodeLink::traffic() const {
  if (!connected()) return {};
  const net::Connection& connection = *handler_->connection();
  return {.received = connection.received_bytes(),
          .queued = connection.queued_bytes(),
          .queued_messages = connection.queued_frames()};
}

void NodeLink::VisitCounters(const CounterVisitor& visitor) const {
  if (pool_) pool_->VisitCounters(visitor);
}

}  // namespace optcache::sidecar
