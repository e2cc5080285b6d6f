#pragma once

// Derives plans on a thread of its own: replays the streams' orders and runs the planner, window
// after window, as far ahead as it is asked to.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache-node/plan_book.h"
#include "coordination/state.h"
#include "plan/plan.h"

namespace optcache::node {

// All that a plan is derived from; equal on all nodes (docs/formats/plan.md).
struct PlanTask {
  coordination::Version version;
  std::vector<coordination::StreamState> streams;  // complete ones that have an order
  coordination::Objective objective = coordination::Objective::kBytes;
  std::vector<coordination::MemberCapacity> capacities;
  using Base = std::vector<std::pair<wire::MemberId, std::vector<SampleId>>>;
  Base base;
  plan::Sizes sizes;
  // docs/formats/list.md, by digest (hex): what the streams' traces name.
  using Lists = std::map<std::string, std::shared_ptr<const std::string>>;
  Lists lists;
};

struct DerivedWindow {
  coordination::Version version;
  Status status;  // an error ends the version: its streams stay without a plan
  std::vector<DerivedPass> passes;
  std::map<StreamId, PassNumber> planned;  // by stream: passes below are planned to their end
  std::vector<SampleId> evictions;         // held by nobody from the window's first pass on
  PassNumber passes_ahead = 1;             // plan::PlanWindow
  bool first = false;                      // of its version
};

// Samples larger than this are kept at their reader's node or not at all: what moves must fit in
// the receivers' transit reserve beside others. Equal on all nodes.
ByteCount MaxMovedBytes(const std::vector<coordination::MemberCapacity>& capacities,
                        const plan::Sizes& sizes);

// Thread-safe. The destructor waits for the window that is being derived.
class PlanDeriver {
 public:
  // Called on the deriver's thread.
  using Deliver = std::function<void(DerivedWindow)>;
  explicit PlanDeriver(Deliver deliver);
  ~PlanDeriver();

  // Gives up what came before and derives `task` from its cuts on.
  void Begin(PlanTask task);
  // Goes on until every stream is planned through the pass given here, and no further.
  void PlanThrough(const std::map<StreamId, PassNumber>& passes);

 private:
  struct Run;  // a task with its planner and how far it is

  void Work(const std::stop_token& stop);
  bool Waiting() REQUIRES(mutex_);

  Deliver deliver_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<PlanTask> next_task_ GUARDED_BY(mutex_);
  struct Progress {
    PassNumber planned = 0;  // passes below are planned
    PassNumber last = 0;     // of the stream
    PassNumber through = 0;  // planned next, and no further

    void WantThrough(PassNumber pass) { through = std::max(through, std::min(pass, last)); }
  };
  std::map<StreamId, Progress> progress_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace optcache::node
