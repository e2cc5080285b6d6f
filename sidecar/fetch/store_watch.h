#pragma once

// Tells the node whether the stores answer, for those who look at a cluster from outside.

#include <map>

#include "base/clock.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "wire/messages.h"

namespace optcache::sidecar {

// Not thread-safe: belongs to the event loop's thread.
class StoreWatch {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(1);
  static constexpr Duration kTellEvery = std::chrono::seconds(15);

  StoreWatch(NodePort& node, const StorePort& store, Alarms& alarms)
      : node_(node), store_(store), alarms_(alarms) {}

  // From now on looks again and again.
  void Start();
  // The node has come (back), and knows nothing.
  void OnNodeUp();

 private:
  struct Told {
    wire::StoreState state = wire::StoreState::kUntried;
    MonotonicTime at{};
  };
  void Look();

  NodePort& node_;
  const StorePort& store_;
  Alarms& alarms_;
  std::map<wire::DatasetKey, Told> told_;
};

}  // namespace optcache::sidecar
