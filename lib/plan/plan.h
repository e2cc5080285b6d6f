#pragma once

// The plan: for every read of every stream, whether the sample is already at its reader's node, and
// at which node it is kept afterwards. Every node derives it for itself; equal inputs give equal
// plans, to the bit, on every machine.
//
//   ASSIGN_OR_RETURN(Planner planner, Planner::Make(inputs, orders));
//   ASSIGN_OR_RETURN(const PlanWindow window, planner.Next());   // the next pass, or window
//   const Decision decision = window.plans.front()->At(position);
//
// One stream that shuffles is planned pass after pass by the slot plan (slot_plan.h): as few store
// reads as any cache can have, fewest moves, evenly. Anything else, windows of about one pass, by
// MIN (window_plan.h). No node's capacity is exceeded at any read. See docs/formats/plan.md.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/stop_check.h"
#include "plan/fitted_base.h"
#include "plan/holders.h"
#include "plan/merged_order.h"
#include "plan/pass_plan.h"
#include "plan/sizes.h"
#include "plan/slot_plan.h"

namespace optcache::plan {

inline constexpr ByteCount kUnlimitedBytes = std::numeric_limits<ByteCount>::max();
inline constexpr Position kWholePass = std::numeric_limits<Position>::max();
inline constexpr std::uint32_t kMaxRate = 1U << 20U;

// A reader order, pass after pass. Position p of a pass is read by rank p % node_of_rank.size().
struct StreamInput {
  StreamId id = 0;
  std::vector<NodeIndex> node_of_rank;  // kNoNode: this rank has no node and always reads the store
  std::uint32_t rate = 1000;            // reads in a unit of time, at most kMaxRate; 0: it pauses
  PassNumber pass = 0;                  // the cut: what comes before (pass, position) is done
  Position position = 0;
  Position stops_at = kWholePass;  // its passes are known to end here
};

// A pass's order, or null if the stream has no such pass. Asked once for each pass, in turn.
using OrderProvider = std::function<Order(StreamId, PassNumber)>;

enum class Method {
  kBest,  // the slot plan where it applies
  kMin,   // always MIN, for comparison
};

struct Inputs {
  Sizes sizes;
  std::vector<ByteCount> capacities;  // by node
  std::vector<StreamInput> streams;
  Holders base;  // at the cut; empty: nobody holds anything
  // Larger samples are kept at their reader's own node or not at all.
  ByteCount max_moved_bytes_per_sample = kUnlimitedBytes;
  Method method = Method::kBest;
  Objective objective = Objective::kBytes;  // of the slot plan; MIN spares bytes
  StopCheck stop;                           // then Next gives kCancelled
};

struct PlanWindow {
  // Held so far and not worth their room: their holders drop them before the window's first read.
  // Empty but for a base that does not fit the inputs, unequal sizes, and a stream's end.
  std::vector<SampleId> evictions;
  // Of the first window: samples that go to other nodes before its first read, as their holders
  // have no room for them any more; in the order in which they are read.
  std::vector<Relocation> relocations;
  // One a pass that the window reaches into, by stream id and pass. Empty: nothing is left to plan.
  std::vector<std::shared_ptr<const PassPlan>> plans;
  // A sample is kept for a read in this pass of its stream or in one of this many that follow,
  // where there is one stream, or passes are known to stop early.
  std::uint32_t passes_ahead = 1;
  // Over the evictions and the plans.
  std::uint64_t digest = 0;
};

// Holds one window's working memory and the orders that it still needs, O(samples) a stream. Not
// thread-safe: one owner. The plans it gives out are immutable.
class Planner {
 public:
  // kInvalidArgument names what does not fit together, and the values.
  static Result<Planner> Make(Inputs inputs, OrderProvider orders);
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;
  ~Planner();

  // The next window. kInvalidArgument if an order is empty or names a sample that does not exist;
  // kCancelled once it is to stop: it looks at least every few milliseconds, but while it gets an
  // order. The planner must not be used after an error.
  Result<PlanWindow> Next();

  // Who holds what after the windows given so far.
  const Holders& holders() const;

 private:
  class Impl;
  explicit Planner(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace optcache::plan
