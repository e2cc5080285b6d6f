// One function a phase, which Advance calls; a phase ends by Enter, Settle or GoBack.
// Invariants: each step follows from what is written alone. `marks` say up to which pass of a
// stream reads were of two revisions. Figures are compared only if they are of the same nodes, jobs
// and memory (internal/rollout_observers.h). While not all is known, nothing moves.

#include "coordinator/rollout.h"

#include <algorithm>

#include <fmt/format.h>

#include "coordinator/internal/rollout_nodes.h"
#include "coordinator/internal/rollout_observers.h"

namespace optcache::coordination {
namespace {

// Where jobs come and go all the time, nodes may never go by the same inputs; what is equal of them
// is compared then.
constexpr std::uint32_t kMaxTries = 3;
// After these, a rollout that rests in Prepare asks again at most once in this time.
constexpr std::int64_t kTriesEverySeconds = 60;
// Nodes that come and go all the time end no observation for ever.
constexpr std::uint32_t kMaxChanges = 3;

void Enter(RolloutState& state, RolloutPhase phase, const RolloutInputs& inputs) {
  state.phase = phase;
  state.progress_time = inputs.now;
  state.ready = 0;
  state.wanted = 0;
}

// Time counts while nodes are waited for, from the last one that answered.
void Await(RolloutState& state, std::uint64_t ready, std::uint64_t wanted,
           const RolloutInputs& inputs) {
  if (inputs.knobs.paused && state.phase != RolloutPhase::kGoBack) wanted = ready;
  const bool waited = state.ready < state.wanted;
  if ((ready < wanted && !waited) || ready > state.ready) state.progress_time = inputs.now;
  state.ready = ready;
  state.wanted = wanted;
}

// From here on another epoch of each stream counts: in Observe one that nothing was read of by now.
void AwaitEpochs(RolloutState& state, const RolloutInputs& inputs) {
  state.marks = state.phase == RolloutPhase::kObserve ? MarksAheadOf(inputs.streams, inputs.passes)
                                                      : MarksOf(inputs.streams);
  state.of_several = false;
  state.epoch_time = inputs.now;
}

// No epoch's end is waited for: its deadline begins when it is again.
void RestFromEpochs(RolloutState& state) {
  state.epoch_time = 0;
}

void WaitForEpochs(RolloutState& state, const RolloutInputs& inputs) {
  if (state.epoch_time == 0) state.epoch_time = inputs.now;
}

bool IsSettled(const RolloutState& state) {
  return state.phase == RolloutPhase::kComplete || state.phase == RolloutPhase::kStopped;
}

// States are kept where people can edit them: is it one that a step leads to?
bool IsPossible(const RolloutState& state) {
  const bool is_update = state.revision != state.current;
  switch (state.phase) {
    case RolloutPhase::kPrepare:
      return true;
    case RolloutPhase::kActivate:
    case RolloutPhase::kObserve:
      return is_update && state.activated && state.activated->revision == state.revision;
    case RolloutPhase::kComplete:
      return !is_update && !state.activated;
    case RolloutPhase::kGoBack:
      return !state.activated;
    case RolloutPhase::kStopped:
      return is_update && !state.activated && state.failed;
  }
  return false;
}

void ForgetObserved(RolloutState& state) {
  state.sums.reset();
  state.since.clear();
  state.changes = 0;
  state.overrun.clear();
  state.of_several = false;
  state.unobserved.clear();
  state.uncompared = false;
}

// Do nodes follow an update?
bool IsMixed(const RolloutState& state) {
  return state.activated && !state.activated->up_to.empty();
}

// What nodes derive from now on is for what there is now.
void AwaitPrediction(RolloutState& state, const RolloutInputs& inputs) {
  state.predicted.reset();
  state.predicted_observers = internal::TextOf(internal::ForecastObserversOf(inputs));
}

// In Prepare and later, `marks` say which passes were read in part by another revision. `previous`
// is of the current one, and stays.
void Begin(RolloutState& state, const RolloutInputs& inputs) {
  if (state.phase == RolloutPhase::kGoBack || IsMixed(state))
    state.marks = MarksAheadOf(inputs.streams, inputs.passes);
  Enter(state, RolloutPhase::kPrepare, inputs);
  state.revision = inputs.revision;
  state.start_time = inputs.now;
  state.restarted_at = inputs.knobs.restarted_at;
  state.forecast.reset();
  state.failed.reset();
  state.tries = 0;
  ForgetObserved(state);
  AwaitPrediction(state, inputs);
}

void GoBack(RolloutState& state, const RolloutInputs& inputs) {
  Enter(state, RolloutPhase::kGoBack, inputs);
  state.activated.reset();
  state.marks.reset();
  ForgetObserved(state);
}

void Settle(RolloutState& state, RolloutPhase phase, const RolloutInputs& inputs) {
  if (state.phase == RolloutPhase::kGoBack || (IsMixed(state) && phase == RolloutPhase::kStopped))
    state.marks = MarksAheadOf(inputs.streams, inputs.passes);
  Enter(state, phase, inputs);
  state.activated.reset();
  ForgetObserved(state);
}

void Fail(RolloutState& state, const RolloutInputs& inputs, std::string reason,
          std::string message) {
  state.failed = {.revision = state.revision,
                  .reason = std::move(reason),
                  .message = std::move(message),
                  .time = inputs.now};
}

void FailPrepare(RolloutState& state, const RolloutInputs& inputs, const RolloutNode& node,
                 const internal::Derivation& derivation) {
  Fail(state, inputs, "PrepareFailed",
       fmt::format("node {} could not derive it: {}", node.name, derivation.error));
}

// Nobody knows what nodes follow: from Prepare on they follow the current revision.
void BeginAnew(RolloutState& state, const RolloutInputs& inputs) {
  Begin(state, inputs);
  state.activated.reset();
  state.marks = MarksAheadOf(inputs.streams, inputs.passes);
}

// The spec asks for another revision, or for another try.
bool TakeUp(RolloutState& state, const RolloutInputs& inputs) {
  if (inputs.revision != state.revision) {
    if (inputs.revision != state.current) {
      Begin(state, inputs);
      return true;
    }
    const bool settled = IsSettled(state);
    state.revision = state.current;
    state.failed.reset();
    state.predicted.reset();
    state.predicted_observers.clear();
    state.forecast.reset();
    if (settled) {
      Settle(state, RolloutPhase::kComplete, inputs);
    } else {
      GoBack(state, inputs);
    }
    return true;
  }
  const bool again = inputs.knobs.restarted_at != state.restarted_at;
  if (!again || state.phase == RolloutPhase::kGoBack) return false;
  if (IsSettled(state) && !inputs.knobs.restarted_at.empty()) {
    Begin(state, inputs);
  } else {
    state.restarted_at = inputs.knobs.restarted_at;
  }
  return true;
}

void EnterActivate(RolloutState& state, const RolloutInputs& inputs) {
  if (!IsMixed(state)) internal::ObserveInForce(state, inputs);
  Enter(state, RolloutPhase::kActivate, inputs);
  // Others that followed an abandoned update go back until it is their turn.
  if (!state.activated || state.activated->revision != state.revision)
    state.activated = ActivatedNodes{.revision = state.revision};
  AwaitEpochs(state, inputs);
}

// What is in force stays so, also when it could not be derived again.
RolloutPhase PhaseOfFailed(const RolloutState& state) {
  return state.revision == state.current ? RolloutPhase::kComplete : RolloutPhase::kStopped;
}

// Nodes stay with an abandoned update while the next one is derived, and no longer.
void LeaveAbandoned(RolloutState& state, const RolloutInputs& inputs) {
  if (!IsMixed(state)) return;
  state.activated.reset();
  state.marks = MarksAheadOf(inputs.streams, inputs.passes);
}

// Jobs, nodes and memory that come and go meanwhile change the inputs: then all derive both again,
// so that the decision and the figures are of what there is now. False: it is decided by what they
// have derived.
bool TriesAgain(RolloutState& state, const RolloutInputs& inputs) {
  if (internal::WentBySameInputs(state, inputs) && internal::IsPredictedForNow(state, inputs))
    return false;
  const bool rests = inputs.now - state.progress_time >= kTriesEverySeconds;
  const bool decides = state.revision == state.current || internal::SomeHaveBoth(state, inputs);
  if (state.tries >= kMaxTries && !rests) return !decides;
  ++state.tries;
  AwaitPrediction(state, inputs);
  Await(state, 0, inputs.nodes.size(), inputs);
  return true;
}

void Prepare(RolloutState& state, const RolloutInputs& inputs) {
  std::uint64_t ready = 0;
  for (const RolloutNode& node : inputs.nodes) {
    const internal::Derivation derivation = internal::DerivationOf(node, state);
    if (!derivation.error.empty() && !inputs.knobs.paused) {
      FailPrepare(state, inputs, node, derivation);
      return Settle(state, PhaseOfFailed(state), inputs);
    }
    if (derivation.complete) ++ready;
  }
  Await(state, ready, inputs.nodes.size(), inputs);
  if (inputs.knobs.paused || internal::IsLate(state, inputs)) LeaveAbandoned(state, inputs);
  if (ready < inputs.nodes.size() || TriesAgain(state, inputs)) return;
  const TrialReport* const update = NewestTrial(inputs.nodes, UpdateTrial(state));
  state.predicted = update != nullptr ? NumbersOf(update->all) : std::nullopt;
  if (inputs.knobs.paused) return;
  if (auto disagreement = internal::Disagreement(state, inputs)) {
    Fail(state, inputs, "DigestMismatch", *std::move(disagreement));
    return Settle(state, PhaseOfFailed(state), inputs);
  }
  // All follow it already: it was only derived again.
  if (state.revision == state.current) return Settle(state, RolloutPhase::kComplete, inputs);
  if (internal::IsHeldAsWorse(state, inputs) && !inputs.knobs.acknowledge)
    return LeaveAbandoned(state, inputs);
  EnterActivate(state, inputs);
}

void EnterObserve(RolloutState& state, const RolloutInputs& inputs) {
  Enter(state, RolloutPhase::kObserve, inputs);
  state.activated->up_to = inputs.nodes.back().name;
  AwaitEpochs(state, inputs);
  state.sums = PassSums{};
  state.since.clear();
}

// Epochs count again when all nodes follow the update.
void ForgetCounted(RolloutState& state) {
  state.of_several = false;
  state.marks.reset();
  state.sums.reset();
  state.since.clear();
  RestFromEpochs(state);
}

// What was begun by others, or with other memory, is no measure of what there is now. Where that
// changes what nodes hold, Observe counts again; jobs alone may come and go all the time.
void NoteObservers(RolloutState& state, const RolloutInputs& inputs) {
  ForgetEarlierGenerations(inputs.streams, inputs.passes, /*after=*/1, state.disturbed);
  const internal::Observers before = internal::ObserversIn(state.observers);
  const internal::Observers now = internal::ObserversOf(inputs);
  const bool hold_alike = internal::HoldAlike(now, before);
  if (hold_alike && now.jobs == before.jobs && !internal::SomeStray(state, inputs)) return;
  state.observers = internal::TextOf(now);
  state.disturbed = MarksAheadOf(inputs.streams, inputs.passes);
  if (state.phase != RolloutPhase::kObserve) return;
  state.of_several = true;
  if (hold_alike || state.changes >= kMaxChanges) return;
  ++state.changes;
  ForgetCounted(state);
}

// The streams that are still in the pass of their mark.
void NoteOverrun(RolloutState& state, const RolloutInputs& inputs) {
  state.overrun.clear();
  for (const ReadingStream& stream : inputs.streams) {
    const auto mark = std::ranges::find(*state.marks, stream.id, &PassMark::stream);
    if (mark != state.marks->end() && mark->pass == stream.pass)
      state.overrun.push_back({.stream = stream.id, .pass = stream.pass});
  }
}

std::vector<ReadingStream> AwaitedStreams(const RolloutState& state, const RolloutInputs& inputs) {
  std::vector<ReadingStream> awaited = inputs.streams;
  std::erase_if(awaited, [&state](const ReadingStream& stream) {
    return internal::IsOverrun(stream, state);
  });
  return awaited;
}

// A node that has come since and cannot derive the update would hold the rest up for ever.
bool FailsOfNewNode(RolloutState& state, const RolloutInputs& inputs) {
  for (const RolloutNode& node : inputs.nodes) {
    if (!internal::IsOrdered(node, state) || node.revision == state.revision) continue;
    const internal::Derivation derivation = internal::DerivationOf(node, state);
    if (derivation.error.empty()) continue;
    FailPrepare(state, inputs, node, derivation);
    return true;
  }
  return false;
}

// A node that comes may stand among those that have gone over, or one go that was kept back: as
// many as `partition` stay with the revision before.
void KeepBack(RolloutState& state, const RolloutInputs& inputs) {
  const internal::Activation nodes = internal::ActivationOf(state, inputs);
  if (nodes.ordered <= nodes.goal) return;
  state.activated->up_to = nodes.goal == 0 ? "" : inputs.nodes[nodes.goal - 1].name;
}

void Activate(RolloutState& state, const RolloutInputs& inputs) {
  if (!inputs.knobs.paused && FailsOfNewNode(state, inputs)) return GoBack(state, inputs);
  KeepBack(state, inputs);
  const internal::Activation nodes = internal::ActivationOf(state, inputs);
  Await(state, nodes.ready, nodes.ordered, inputs);
  if (nodes.ready < nodes.ordered) return;
  if (!state.marks) return AwaitEpochs(state, inputs);  // the batch has gone over just now
  if (inputs.knobs.paused) return RestFromEpochs(state);
  if (nodes.ordered == inputs.nodes.size()) return EnterObserve(state, inputs);
  if (nodes.ordered == nodes.goal) return RestFromEpochs(state);
  WaitForEpochs(state, inputs);
  if (inputs.knobs.at_epoch_boundary &&
      !AllHaveBegunAnother(*state.marks, AwaitedStreams(state, inputs))) {
    if (!internal::IsEpochLate(state, inputs)) return;
    NoteOverrun(state, inputs);
  }
  const std::uint64_t batch = inputs.knobs.all_at_once
                                  ? inputs.nodes.size()
                                  : BatchOf(inputs.knobs.max_unavailable, inputs.nodes.size());
  const std::uint64_t ordered = std::min(nodes.ordered + batch, nodes.goal);
  state.activated->up_to = inputs.nodes[ordered - 1].name;
  state.marks.reset();
  Await(state, nodes.ready, ordered, inputs);
}

// A node that has started again follows the revision before until it has derived the update: epochs
// of two revisions say nothing of either. One that starts again and again is not awaited.
bool AwaitsFollowers(const RolloutState& state, const RolloutInputs& inputs) {
  return state.ready < inputs.nodes.size() && !internal::IsLate(state, inputs) &&
         (state.changes < kMaxChanges || !state.of_several);
}

void Observe(RolloutState& state, const RolloutInputs& inputs) {
  if (!inputs.knobs.paused && FailsOfNewNode(state, inputs)) return GoBack(state, inputs);
  const std::uint64_t followed = internal::ActivationOf(state, inputs).followed;
  Await(state, followed, inputs.nodes.size(), inputs);
  if (AwaitsFollowers(state, inputs)) return ForgetCounted(state);
  if (!state.marks) AwaitEpochs(state, inputs);
  if (!state.sums) state.sums = PassSums{};
  if (followed < inputs.nodes.size()) state.of_several = true;
  ForgetEarlierGenerations(inputs.streams, inputs.passes, inputs.knobs.after, *state.marks);
  const CountedPasses counted =
      CountPasses(inputs.passes, inputs.mean_sample_bytes, inputs.knobs.after, *state.marks,
                  *state.sums, state.since);
  if (counted.awaited) state.epoch_time = inputs.now;
  if (counted.some) return;  // it is kept before it is judged
  if (inputs.knobs.paused) return RestFromEpochs(state);
  WaitForEpochs(state, inputs);
  const bool late = internal::IsEpochLate(state, inputs);
  const std::vector<ReadingStream> awaited = AwaitedStreams(state, inputs);
  const bool over = std::ranges::all_of(*state.marks, [&](const PassMark& mark) {
    return mark.later || mark.passes >= inputs.knobs.after ||
           std::ranges::find(awaited, mark.stream, &ReadingStream::id) == awaited.end();
  });
  if (!over && !late) return;
  // All that were counted on have ended before: those that have begun since show it as well, unless
  // they end no epoch either. Nothing speaks against the update then.
  const bool shown = std::ranges::any_of(*state.marks, [&](const PassMark& mark) {
    return mark.passes >= (mark.later ? inputs.knobs.after : 1);
  });
  if (!shown && !awaited.empty() && !late) return;
  const std::optional<ObservedEpoch> observed =
      ObservedOf(*state.sums, CountedStreams(*state.marks));
  auto [reason, message] = observed ? internal::FaultOf(state, inputs, *observed)
                                    : std::pair<std::string, std::string>();
  if (!reason.empty()) {
    Fail(state, inputs, std::move(reason), std::move(message));
    return GoBack(state, inputs);
  }
  state.current = state.revision;
  const bool compared = internal::IsComparable(state, inputs);
  const bool of_one_kind = internal::IsOfOneKind(state, inputs);
  internal::ForgetPrevious(state);
  if (observed && of_one_kind) internal::NotePrevious(state, *observed, inputs);
  Settle(state, RolloutPhase::kComplete, inputs);
  if (!observed) state.unobserved = internal::NamesOf(inputs.streams);
  state.uncompared = observed && !compared;
}

void WaitForReturn(RolloutState& state, const RolloutInputs& inputs) {
  const auto returned = static_cast<std::uint64_t>(
      std::ranges::count(inputs.nodes, state.current, &RolloutNode::revision));
  Await(state, returned, inputs.nodes.size(), inputs);
  if (returned < inputs.nodes.size()) return;
  Settle(state, state.failed ? RolloutPhase::kStopped : RolloutPhase::kComplete, inputs);
}

// Asks for a forecast of what is in force when other jobs read than at the last, or with other
// memory, and takes it. That of Prepare went by what lay there before.
void PredictJobs(RolloutState& state, const RolloutInputs& inputs) {
  if (!inputs.is_tried || inputs.nodes.empty()) return;
  if (auto wanted = internal::ForecastToAskFor(state, inputs)) {
    state.forecast = std::move(wanted);
    AwaitPrediction(state, inputs);
  }
  if (!state.forecast || !state.forecast->awaited) return;
  const std::string id = JobsTrial(state);
  const bool all_have = std::ranges::all_of(inputs.nodes, [&id](const RolloutNode& node) {
    return std::ranges::find(node.trials, id, &TrialReport::id) != node.trials.end();
  });
  if (!all_have) return;
  const TrialReport* const trial = NewestTrial(inputs.nodes, id);
  state.predicted = trial != nullptr ? NumbersOf(trial->all) : std::nullopt;
  state.forecast->awaited = false;
}

}  // namespace

std::uint64_t BatchOf(const MaxUnavailable& max, std::uint64_t nodes) {
  const std::uint64_t amount = max.percent ? (nodes * max.amount + 99) / 100 : max.amount;
  return std::max<std::uint64_t>(amount, 1);
}

RolloutState Advance(RolloutState state, const RolloutInputs& inputs) {
  if (state.current.empty()) {
    return {.current = inputs.revision,
            .revision = inputs.revision,
            .start_time = inputs.now,
            .progress_time = inputs.now,
            .restarted_at = inputs.knobs.restarted_at};
  }
  // A leader that has just begun hears of nodes and streams one by one.
  if (!inputs.all_known) return state;
  if (!IsPossible(state)) {
    BeginAnew(state, inputs);
    return state;
  }
  if (TakeUp(state, inputs)) return state;
  NoteObservers(state, inputs);
  // Without nodes nothing can be derived, followed or observed.
  if (inputs.nodes.empty() && !IsSettled(state) && state.phase != RolloutPhase::kGoBack) {
    Await(state, 0, 0, inputs);
    return state;
  }
  switch (state.phase) {
    case RolloutPhase::kPrepare:
      Prepare(state, inputs);
      break;
    case RolloutPhase::kActivate:
      Activate(state, inputs);
      break;
    case RolloutPhase::kObserve:
      Observe(state, inputs);
      break;
    case RolloutPhase::kGoBack:
      WaitForReturn(state, inputs);
      break;
    case RolloutPhase::kComplete:
      PredictJobs(state, inputs);
      break;
    case RolloutPhase::kStopped:
      break;
  }
  return state;
}

}  // namespace optcache::coordination
