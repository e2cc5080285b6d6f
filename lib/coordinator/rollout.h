#pragma once

// How a change of a CachePlan comes into force, step by step; docs/formats/rollout.md says what
// each phase waits for.
//
//   Prepare ──► Activate ──► Observe ──► Complete
//      │            └──┬────────┘  what was observed is too bad, or the change is taken back
//      ▼               ▼
//   Stopped ◄─────── GoBack ──► Complete
//
// The host keeps the state, where its successor finds it, and does nothing by a state that is not
// kept yet: Advance gives the next state, and OrdersOf what a kept one asks of the coordinator.
// Pure: time is an argument.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cache_plan.h"
#include "coordination/state.h"
#include "coordination/status.h"
#include "coordinator/observed_passes.h"

namespace optcache::coordination {

enum class RolloutPhase : std::uint8_t {
  kPrepare,
  kActivate,
  kObserve,
  kComplete,
  kGoBack,
  kStopped
};
std::string_view PhaseName(RolloutPhase phase);                  // "GoBack"
std::optional<RolloutPhase> PhaseOfName(std::string_view name);  // nullopt: there is none
bool IsFailureReason(std::string_view reason);                   // of RolloutFailure

// Nodes named `up_to`, or before it, follow `revision`, or shall.
struct ActivatedNodes {
  std::string revision;
  std::string up_to;  // empty: none yet
  friend bool operator==(const ActivatedNodes&, const ActivatedNodes&) = default;
};

// Why an update was stopped, or the revision in force could not be derived again.
struct RolloutFailure {
  std::string revision;
  std::string reason;  // one word
  std::string message;
  std::int64_t time = 0;  // Unix seconds
  friend bool operator==(const RolloutFailure&, const RolloutFailure&) = default;
};

// What a revision in force that no plan predicts is worth, by a trial for the jobs that read.
struct JobsForecast {
  std::string jobs;      // a digest of the streams that read when it was asked for
  bool awaited = false;  // nodes still derive it
  friend bool operator==(const JobsForecast&, const JobsForecast&) = default;
};

// All that is known between two steps. Revisions are named by their hashes, times are Unix seconds.
struct RolloutState {
  std::string current;  // the revision in force; empty: there was none yet
  RolloutPhase phase = RolloutPhase::kComplete;
  std::string revision;            // whose phase that is
  std::int64_t start_time = 0;     // of the rollout
  std::int64_t progress_time = 0;  // when one more node had answered, or waiting for nodes began
  std::uint64_t ready = 0;         // nodes that have answered
  std::uint64_t wanted = 0;        // of this many that are waited for
  // Since when an epoch's end has been awaited without one more that counts; 0: none is.
  std::int64_t epoch_time = 0;
  std::string restarted_at;  // of the spec, when it was taken up
  // How often the trials of Prepare were asked for again, as nodes had gone by different inputs.
  std::uint32_t tries = 0;
  std::optional<ActivatedNodes> activated;
  // The nodes, their runs, the jobs and the memory at the last look; passes up to `disturbed` were
  // begun with others. In Observe: how often others have begun `sums` again, and whether these are
  // of several, or of two revisions.
  std::string observers;
  std::vector<PassMark> disturbed;
  std::uint32_t changes = 0;
  bool of_several = false;
  // In Activate absent until the last batch has gone over, in Observe while a node has yet to
  // follow the update. At most kMaxMarks; other streams are not waited for. In Complete, Stopped
  // and Prepare: passes up to them were not of this revision alone.
  std::optional<std::vector<PassMark>> marks;
  // Streams whose epoch did not end by its deadline, with the pass they were in: as long as they
  // are in it they are not waited for again.
  std::vector<PassMark> overrun;
  // In Complete: the jobs that read and had ended no epoch by the deadline, so that nothing was
  // observed; else empty.
  std::string unobserved;
  // In Complete: it was observed, and not compared with the revision before, of which nothing was
  // known with these nodes, jobs and memory.
  bool uncompared = false;
  std::optional<PassSums> sums;           // of Observe
  std::string since;                      // the first pass in `sums`: "pass 7 of NAME"
  std::optional<EpochNumbers> predicted;  // of the update; in Complete of what is in force
  std::string predicted_observers;        // for these
  std::optional<JobsForecast> forecast;   // in Complete: where `predicted` is from, or will be
  std::optional<ObservedEpoch> previous;  // of the revision in force, when it was observed last
  std::string previous_observers;         // by these
  std::optional<RolloutFailure> failed;
  friend bool operator==(const RolloutState&, const RolloutState&) = default;
};

using api::MaxUnavailable;
using api::RolloutKnobs;

// A node on which the dataset is placed.
struct RolloutNode {
  std::string name;
  MemberId member = 0;
  std::uint64_t incarnation = 0;  // of the member; with it, another one at each start of the node
  std::string revision;           // that it follows; empty: of no name, or it has not said
  bool planned = false;           // it has derived the newest plan
  std::vector<TrialReport> trials;
};

struct RolloutInputs {
  std::string revision;   // that the spec asks for
  bool is_tried = false;  // only a trial predicts what comes of that: no node plans by it
  RolloutKnobs knobs;
  std::vector<std::string> jobs;       // that it or the one in force names: trials expect them
  std::vector<RolloutNode> nodes;      // ascending by name
  std::vector<ReadingStream> streams;  // those that have not ended, whichever manifest they read
  ByteCount memory = 0;                // that nodes grant the dataset
  // False soon after another coordinator has gone: there may be other nodes and streams.
  bool all_known = true;
  std::vector<PassStatus> passes;  // by stream and pass
  ByteCount mean_sample_bytes = 0;
  std::int64_t now = 0;  // Unix seconds
};

// The next state; the same as before when nothing is to be written. One phase at a time. From a
// state that no step leads to it begins again.
RolloutState Advance(RolloutState state, const RolloutInputs& inputs);

// What a state that is kept asks of the coordinator.
struct RolloutOrders {
  std::string current;
  std::string update;                                       // empty: there is none
  std::vector<std::string> nodes;                           // that follow the update, ascending
  std::vector<std::pair<std::string, std::string>> trials;  // id and revision
  friend bool operator==(const RolloutOrders&, const RolloutOrders&) = default;
};
RolloutOrders OrdersOf(const RolloutState& state, const RolloutInputs& inputs);

// What to tell people.
struct RolloutReport {
  std::uint64_t desired = 0;
  std::uint64_t prepared = 0;  // nodes that have derived what the spec asks for, or follow it
  std::uint64_t active = 0;    // that follow it
  bool moving = false;         // it is to be looked at often
  bool progressing = false;
  std::string reason;
  std::string message;
  std::optional<EpochNumbers> predicted;  // for what was observed
  std::optional<ObservedEpoch> observed;  // nullopt: nothing since then that counts
  bool forgets = false;                   // what was observed before is of another revision
  std::uint64_t passes = 0;               // of all streams, that `observed` comes from
  std::string since;                      // the first of them
};
RolloutReport ReportOf(const RolloutState& state, const RolloutInputs& inputs);

// The trials that Prepare asks for.
std::string UpdateTrial(
    const RolloutState& state);  // of this try: nodes may still report earlier ones
std::string CurrentTrial(std::string_view revision, std::uint32_t tries = 0);

// The one that Complete asks for, for each set of jobs that read and the memory that they have.
// Meaningful where there is a `forecast`.
std::string JobsTrial(const RolloutState& state);

// Of a trial that nodes have derived: those that go by the newest inputs count. Null: none has.
const TrialReport* NewestTrial(const std::vector<RolloutNode>& nodes, std::string_view id);

// In Prepare: "node X, which could not derive REVISION: WHY" of one that cannot say whether the
// update is worse than the revision in force; empty: there is none.
std::string NodeThatCannotCompare(const RolloutState& state, const RolloutInputs& inputs);

// How many nodes go over at a time, at least 1.
std::uint64_t BatchOf(const MaxUnavailable& max, std::uint64_t nodes);

}  // namespace optcache::coordination
