#pragma once

// Which sidecars reach the stores of their datasets. Fed by the sidecars, read by reports.

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "cache-node/retention/effects.h"
#include "coordination/state.h"
#include "wire/messages.h"

namespace optcache::node {

// Not thread-safe: the event loop owns it.
class StoreTable {
 public:
  // Ignored beyond coordination::kMaxDatasets of one client.
  void OnHealth(ClientId from, const wire::StoreHealth& health, MonotonicTime now);
  void OnClosed(ClientId from);

  // Of an object that has changed until kChangedFor after the last word of it.
  static constexpr Duration kChangedFor = std::chrono::minutes(1);
  coordination::StoreReport Report(wire::DatasetKey dataset, MonotonicTime now) const;

  // Rises with everything the coordinator should hear of at once.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Entry {
    wire::StoreState state = wire::StoreState::kUntried;
    MonotonicTime silent_since{};
    std::string cause;
  };
  // A job that meets such an object often ends by it, so this outlives the connection.
  struct Changed {
    std::string object;
    MonotonicTime at{};
  };
  void NoteChange(const wire::StoreHealth& health, MonotonicTime now);

  std::map<ClientId, std::map<wire::DatasetKey, Entry>> clients_;
  std::map<wire::DatasetKey, Changed> changed_;
  std::uint64_t changes_ = 0;
};

}  // namespace optcache::node
