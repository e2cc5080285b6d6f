#pragma once

// A client whose writes stop the moment that this process may no longer lead.

#include <utility>

#include "kube/client.h"

namespace optcache::kube {

// Gives each write the permit, for example LeaderElector::WritesUntil, which the client asks at the
// moment the request would be sent, so also after a wait for a place. Reads and watches go through.
// `client` outlives it.
class FencedClient final : public Client {
 public:
  FencedClient(Client& client, WritePermit permit) : client_(client), permit_(std::move(permit)) {}

  void Call(ApiRequest request, ObjectCallback callback) override;
  std::unique_ptr<WatchHandle> Watch(WatchRequest request, WatchCallbacks callbacks) override;

 private:
  Client& client_;
  const WritePermit permit_;
};

}  // namespace optcache::kube
