#pragma once

// Tells the node what was saved, for the status of the Datasets.

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "sidecar/clients/saved.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "wire/messages.h"

namespace optcache::sidecar {

// Not thread-safe: belongs to the event loop's thread.
class SavingsWatch {
 public:
  static constexpr Duration kTellEvery = std::chrono::seconds(5);

  using SavedOfAll = std::function<std::vector<DatasetSaved>()>;
  SavingsWatch(NodePort& node, SavedOfAll saved, Alarms& alarms)
      : node_(node), saved_(std::move(saved)), alarms_(alarms) {}

  // From now on tells again and again.
  void Start();
  // A new connection: what the one before was told does not go over this one.
  void OnNodeUp();
  void Tell();

 private:
  struct Told {
    wire::Savings in_all;  // since the sidecar began, as it was last sent
    wire::Savings before;  // of that, over earlier connections
  };

  NodePort& node_;
  SavedOfAll saved_;
  Alarms& alarms_;
  std::map<wire::DatasetKey, Told> told_;
};

}  // namespace optcache::sidecar
