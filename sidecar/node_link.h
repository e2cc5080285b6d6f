#pragma once

// The connection to the node of this machine: kept in the background, never waited for.

#include <memory>
#include <string>

#include "base/counters.h"
#include "net/client_pool.h"
#include "net/event_loop.h"
#include "sidecar/feeder.h"
#include "sidecar/ports.h"

namespace optcache::sidecar {

// Used on the loop's thread only.
class NodeLink final : public NodePort {
 public:
  // `name` is this sidecar's, for the node's logs.
  NodeLink(net::EventLoop& loop, std::string address, std::string name);
  ~NodeLink() override;
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  // From now on connects, and tells `feeder` what the node says until Close.
  void Open(Feeder& feeder);
  void Close();

  bool connected() const override;
  void Send(std::uint32_t request, const wire::Message& message) override;
  void Put(const wire::Put& put, BufferRef payload) override;
  void Drop(Status why) override;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Handler;

  net::EventLoop& loop_;
  std::string address_;
  std::string name_;
  std::shared_ptr<Handler> handler_;  // shared with the connections, which may outlive this
  std::unique_ptr<net::ClientPool> pool_;
};

}  // namespace optcache::sidecar
