#pragma once

// The connection to the node of this machine: kept in the background, never waited for.

#include <memory>
#include <string>
#include <utility>

#include "base/counters.h"
#include "net/client_pool.h"
#include "net/event_loop.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

struct NodeLinkOptions {
  std::string address;  // "host:port"
  std::string name;     // this sidecar's: that of the pod whose token it has, if it has one
  std::shared_ptr<const net::TlsContext> tls;  // null: plaintext
  std::string token_file;                      // read for each connection; empty: no token
  bool bulk = true;  // with TLS: offers to go on in plaintext with sealed frames
};

// How it connects.
net::ClientPoolOptions PoolOptionsOf(const NodeLinkOptions& options);

// Used on the loop's thread only.
class NodeLink final : public NodePort {
 public:
  NodeLink(net::EventLoop& loop, NodeLinkOptions options)
      : loop_(loop), options_(std::move(options)) {}
  ~NodeLink() override;
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  // From now on connects, and tells `listener` what the node says until Close.
  void Open(NodeListener& listener);
  void Close();

  bool connected() const override;
  void Send(std::uint32_t request, const wire::Message& message) override;
  void Put(const wire::Put& put, BufferRef payload) override;
  void Drop(Status why) override;
  NodeTraffic traffic() const override;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Handler;

  net::EventLoop& loop_;
  NodeLinkOptions options_;
  std::shared_ptr<Handler> handler_;  // shared with the connections, which may outlive this
  std::unique_ptr<net::ClientPool> pool_;
};

}  // namespace optcache::sidecar
