#pragma once

// A client whose writes stop the moment that this process may no longer lead.

#include <functional>
#include <optional>

#include "kube/client.h"

namespace optcache::kube {

// Until when this process may write, or nothing if it may not: LeaderElector::WritesUntil.
using WritePermit = std::function<std::optional<MonotonicTime>()>;

// Asks the permit before each write, at the moment it would be sent, and gives it no more time than
// the permit has left: kCancelled without asking the server if there is none. Reads and watches go
// through. `client` and `clock` outlive it.
class FencedClient final : public Client {
 public:
  FencedClient(Client& client, const Clock& clock, WritePermit permit)
      : client_(client), clock_(clock), permit_(std::move(permit)) {}

  void Call(ApiRequest request, ObjectCallback callback) override;
  std::unique_ptr<WatchHandle> Watch(WatchRequest request, WatchCallbacks callbacks) override;

 private:
  Client& client_;
  const Clock& clock_;
  const WritePermit permit_;
};

}  // namespace optcache::kube
