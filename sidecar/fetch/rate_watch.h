#pragma once

// Keeps the reads of stores that have a limit to this sidecar's share of it: tells the node what is
// wanted, and does as it says.

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "wire/messages.h"

namespace optcache::sidecar {

// Before the first word of the node a dataset has a small part of its limit: others read it, too,
// perhaps. If none comes, the limit is this sidecar's alone. A share stays until the next word;
// where none comes for long, what is less than the small part becomes that, since a sidecar that
// had what it needed from the node has to read all of it from the store now. Not thread-safe:
// belongs to the event loop's thread.
class RateWatch {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(1);
  static constexpr Duration kFirstWordWithin = std::chrono::seconds(5);
  static constexpr double kFirstShare = 0.1;
  static constexpr Duration kSilentFor = std::chrono::seconds(30);
  // Is wanted beyond what is used, so that reads that become more are not held back at once.
  static constexpr double kHeadroom = 1.25;

  RateWatch(NodePort& node, StorePort& store, Alarms& alarms)
      : node_(node), store_(store), alarms_(alarms) {}

  // From now on looks again and again.
  void Start();
  // The store may have one more.
  void OnDataset() { Look(); }
  // The node has come (back), and knows nothing.
  void OnNodeUp() { Look(); }
  void OnShare(const wire::StoreShare& share);

 private:
  struct Rate {
    std::uint64_t used = 0;  // in all
    std::uint64_t held = 0;
    double a_second = 0;  // follows what is used up at once and down slowly
    bool is_held_back = false;
  };
  struct Watched {
    MonotonicTime since{};
    MonotonicTime measured_at{};
    bool waits = true;  // for the first word, or until that is over
    // The last word, until the node has been silent for long.
    std::optional<MonotonicTime> heard;
    StoreRate share;
    Rate requests;
    Rate bytes;
  };
  void Look();
  void Begin(const StoreUse& use, MonotonicTime now);
  static void Measure(std::uint64_t used, std::uint64_t held, double seconds, Rate& rate);
  void Tell(wire::DatasetKey dataset, const Watched& watched);

  NodePort& node_;
  StorePort& store_;
  Alarms& alarms_;
  std::map<wire::DatasetKey, Watched> datasets_;
};

}  // namespace optcache::sidecar
