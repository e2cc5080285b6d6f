// What a rollout asks of the coordinator (orders) and tells people (words and figures). Both follow
// from the state and the inputs; nothing here changes the state. The order: names of phases, words
// of each phase, figures, then the two entries.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/some_of.h"
#include "coordinator/internal/rollout_nodes.h"
#include "coordinator/internal/rollout_observers.h"
#include "coordinator/rollout.h"

namespace optcache::coordination {
namespace {

using internal::ActivationOf;
using internal::DerivationOf;

constexpr std::array<std::pair<RolloutPhase, std::string_view>, 6> kPhases{
    {{RolloutPhase::kPrepare, "Prepare"},
     {RolloutPhase::kActivate, "Activate"},
     {RolloutPhase::kObserve, "Observe"},
     {RolloutPhase::kComplete, "Complete"},
     {RolloutPhase::kGoBack, "GoBack"},
     {RolloutPhase::kStopped, "Stopped"}}};

constexpr auto kFailureReasons = std::to_array<std::string_view>(
    {"DigestMismatch", "PrepareFailed", "BelowPredicted", "WorseThanPrevious"});

bool IsAwaited(const RolloutNode& node, const RolloutState& state) {
  switch (state.phase) {
    case RolloutPhase::kPrepare:
      return !DerivationOf(node, state).complete;
    case RolloutPhase::kActivate:
      return internal::IsOrdered(node, state) && (node.revision != state.revision || !node.planned);
    case RolloutPhase::kObserve:
      return node.revision != state.revision;
    case RolloutPhase::kGoBack:
      return node.revision != state.current;
    default:
      return false;
  }
}

std::string AwaitedNodes(const RolloutState& state, const RolloutInputs& inputs) {
  std::vector<std::string> names;
  for (const RolloutNode& node : inputs.nodes) {
    if (IsAwaited(node, state)) names.push_back(node.name);
  }
  return SomeOf(names);
}

// The streams that still read, and whose mark says that their epoch's end is awaited.
template <typename Awaits>
std::string AwaitedStreams(const RolloutState& state, const RolloutInputs& inputs, Awaits awaits) {
  std::vector<std::string> names;
  for (const ReadingStream& stream : inputs.streams) {
    const auto& marks = *state.marks;
    const auto mark = std::ranges::lower_bound(marks, stream.id, {}, &PassMark::stream);
    if (mark != marks.end() && mark->stream == stream.id && awaits(*mark, stream) &&
        !internal::IsOverrun(stream, state))
      names.push_back(stream.name);
  }
  return SomeOf(names);
}

struct Words {
  bool progressing = false;
  std::string reason;
  std::string message;
};

Words OfPrepare(const RolloutState& state, const RolloutInputs& inputs) {
  const auto complete = static_cast<std::uint64_t>(std::ranges::count_if(
      inputs.nodes, [&](const RolloutNode& node) { return DerivationOf(node, state).complete; }));
  std::string without;
  if (const std::string node = NodeThatCannotCompare(state, inputs); !node.empty())
    without = ", compared without " + node;
  if (complete == inputs.nodes.size() && internal::IsHeldAsWorse(state, inputs) &&
      !inputs.knobs.acknowledge) {
    return {.reason = "PredictedWorse",
            .message = "more bytes of the source are predicted for a read than with " +
                       state.current + without +
                       "; to continue all the same, set spec.rollout.acknowledge to true"};
  }
  std::string message =
      fmt::format("{} of {} nodes have derived {}", complete, inputs.nodes.size(), state.revision);
  if (state.activated) {
    const auto others =
        std::ranges::count(inputs.nodes, state.activated->revision, &RolloutNode::revision);
    message += fmt::format(", {} follow {} meanwhile", others, state.activated->revision);
  }
  return {.progressing = true, .reason = "Preparing", .message = message + without};
}

Words OfActivate(const RolloutState& state, const RolloutInputs& inputs) {
  const internal::Activation nodes = ActivationOf(state, inputs);
  std::string how_far =
      fmt::format("{} of {} nodes follow {}", nodes.followed, inputs.nodes.size(), state.revision);
  if (nodes.ready < nodes.followed)
    how_far += fmt::format(", {} have derived the newest plan", nodes.ready);
  if (nodes.ready < nodes.ordered || !state.marks || nodes.ordered == inputs.nodes.size())
    return {.progressing = true, .reason = "NodesChange", .message = how_far};
  if (nodes.ordered >= nodes.goal) {
    return {.reason = "Partitioned",
            .message = fmt::format("{}, spec.rollout.partition keeps {} back", how_far,
                                   inputs.nodes.size() - nodes.ordered)};
  }
  return {.progressing = true,
          .reason = "EpochAwaited",
          .message =
              how_far + ", the next ones go over when these begin another epoch: " +
              AwaitedStreams(state, inputs, [](const PassMark& mark, const ReadingStream& stream) {
                return mark.pass == stream.pass;
              })};
}

Words OfObserve(const RolloutState& state, const RolloutInputs& inputs) {
  const std::uint32_t after = inputs.knobs.after;
  const std::uint64_t followed = ActivationOf(state, inputs).followed;
  std::string message =
      followed == inputs.nodes.size()
          ? fmt::format("all nodes follow {}", state.revision)
          : fmt::format("{} of {} nodes follow {}", followed, inputs.nodes.size(), state.revision);
  std::uint32_t fewest = after;
  if (state.marks) {
    for (const PassMark& mark : *state.marks)
      fewest = std::min(fewest, mark.later ? after : mark.passes);
    const std::string awaited =
        AwaitedStreams(state, inputs, [after](const PassMark& mark, const ReadingStream&) {
          return !mark.later && mark.passes < after;
        });
    if (!awaited.empty())
      message += fmt::format(", {} of {} epochs are observed of: {}", fewest, after, awaited);
  }
  return {.progressing = true, .reason = "Observing", .message = std::move(message)};
}

// Until a whole epoch has been seen after all.
bool IsUnobserved(const RolloutState& state, const RolloutInputs& inputs) {
  if (state.unobserved.empty()) return false;
  const std::vector<PassMark> none;
  return LatestOf(inputs.passes, state.marks.value_or(none), inputs.mean_sample_bytes).streams == 0;
}

Words OfPhase(const RolloutState& state, const RolloutInputs& inputs) {
  switch (state.phase) {
    case RolloutPhase::kPrepare:
      return OfPrepare(state, inputs);
    case RolloutPhase::kActivate:
      return OfActivate(state, inputs);
    case RolloutPhase::kObserve:
      return OfObserve(state, inputs);
    case RolloutPhase::kGoBack:
      return {.progressing = true,
              .reason = "GoingBack",
              .message = fmt::format("{} of {} nodes follow {} again", state.ready,
                                     inputs.nodes.size(), state.current)};
    case RolloutPhase::kStopped:
      if (state.failed) return {.reason = state.failed->reason, .message = state.failed->message};
      break;
    case RolloutPhase::kComplete:
      if (state.failed) {
        return {.reason = state.failed->reason,
                .message = fmt::format("{} is in force; it could not be derived again: {}",
                                       state.current, state.failed->message)};
      }
      if (IsUnobserved(state, inputs)) {
        return {.reason = "CompleteUnobserved",
                .message = fmt::format("{} is in force; nothing was observed of it, as no epoch "
                                       "ended within {} s: {}",
                                       state.current, inputs.knobs.epoch_deadline_seconds,
                                       state.unobserved)};
      }
      break;
  }
  return {.reason = "Complete",
          .message = fmt::format("{} is in force{}", state.current,
                                 state.uncompared ? "; it was not compared with the revision "
                                                    "before, of which nothing was observed with "
                                                    "these nodes, jobs and memory"
                                                  : "")};
}

Words WordsOf(const RolloutState& state, const RolloutInputs& inputs) {
  Words words = OfPhase(state, inputs);
  const bool settled =
      state.phase == RolloutPhase::kComplete || state.phase == RolloutPhase::kStopped;
  if (settled) return words;
  if (inputs.nodes.empty()) {
    return {.reason = "NotPlaced",
            .message = fmt::format("the Dataset is on no node: {} waits", state.revision)};
  }
  if (inputs.knobs.paused && state.phase != RolloutPhase::kGoBack)
    return {.reason = "Paused", .message = "spec.rollout.paused: " + words.message};
  if (internal::IsLate(state, inputs)) {
    return {.reason = "ProgressDeadlineExceeded",
            .message =
                fmt::format("{}; awaited for more than {} s: {}", words.message,
                            inputs.knobs.progress_deadline_seconds, AwaitedNodes(state, inputs))};
  }
  return words;
}

void AddNumbers(const RolloutState& state, const RolloutInputs& inputs, RolloutReport& report) {
  const bool mixed = state.phase != RolloutPhase::kObserve &&
                     (state.activated || state.phase == RolloutPhase::kGoBack);
  report.forgets = state.phase == RolloutPhase::kObserve || state.phase == RolloutPhase::kGoBack ||
                   (state.phase == RolloutPhase::kPrepare && state.activated);
  if (mixed) return;
  if (state.phase == RolloutPhase::kObserve) {
    if (!state.sums || state.sums->reads == 0) return;
    const std::uint64_t streams = CountedStreams(state.marks.value_or(std::vector<PassMark>()));
    report.observed = ObservedOf(*state.sums, streams);
    report.passes = state.sums->passes;
    report.since = state.since;
    report.predicted = internal::PredictedOf(state, inputs, streams);
    return;
  }
  const LatestPasses latest = LatestOf(inputs.passes, state.marks.value_or(std::vector<PassMark>()),
                                       inputs.mean_sample_bytes);
  report.observed = ObservedOf(latest.sums, latest.streams);
  report.passes = latest.sums.passes;
  report.since = latest.since;
  report.predicted = PlannedOf(latest.sums, latest.streams);
  if (state.phase != RolloutPhase::kComplete || !state.forecast) return;
  // It is of the jobs that read now; what was observed of those before goes. What Observe has
  // counted is of these jobs, and stands until another epoch ends.
  if (!inputs.streams.empty() && !report.observed && !internal::AllAreCounted(state, inputs))
    report.forgets = true;
  const bool counts = internal::IsPredictedOfReaders(state, inputs) &&
                      (!report.observed || internal::AreOfReaders(latest.sums, state, inputs));
  if (!report.predicted && counts) report.predicted = state.predicted;
}

}  // namespace

std::string_view PhaseName(RolloutPhase phase) {
  return std::ranges::find(kPhases, phase, &std::pair<RolloutPhase, std::string_view>::first)
      ->second;
}

std::optional<RolloutPhase> PhaseOfName(std::string_view name) {
  const auto found =
      std::ranges::find(kPhases, name, &std::pair<RolloutPhase, std::string_view>::second);
  return found == kPhases.end() ? std::nullopt : std::optional(found->first);
}

bool IsFailureReason(std::string_view reason) {
  return std::ranges::find(kFailureReasons, reason) != kFailureReasons.end();
}

RolloutOrders OrdersOf(const RolloutState& state, const RolloutInputs& inputs) {
  RolloutOrders orders{.current = state.current};
  if (state.activated) {
    // A node that comes prepares first.
    const bool is_update = state.activated->revision == state.revision;
    for (const RolloutNode& node : inputs.nodes) {
      if (!internal::IsOrdered(node, state)) continue;
      const bool has_derived = is_update && DerivationOf(node, state).update;
      if (node.revision == state.activated->revision || has_derived)
        orders.nodes.push_back(node.name);
    }
    if (!orders.nodes.empty()) orders.update = state.activated->revision;
  }
  const bool prepares = state.phase == RolloutPhase::kPrepare;
  if (prepares || state.phase == RolloutPhase::kActivate || state.phase == RolloutPhase::kObserve)
    orders.trials.emplace_back(UpdateTrial(state), state.revision);
  if (prepares && state.revision != state.current)
    orders.trials.emplace_back(CurrentTrial(state.current, state.tries), state.current);
  if (state.phase == RolloutPhase::kComplete && state.forecast && state.forecast->awaited)
    orders.trials.emplace_back(JobsTrial(state), state.current);
  return orders;
}

RolloutReport ReportOf(const RolloutState& state, const RolloutInputs& inputs) {
  RolloutReport report{
      .desired = inputs.nodes.size(),
      .moving = state.phase != RolloutPhase::kComplete && state.phase != RolloutPhase::kStopped};
  for (const RolloutNode& node : inputs.nodes) {
    const bool follows = node.revision == state.revision;
    if (follows) ++report.active;
    if (follows || DerivationOf(node, state).update) ++report.prepared;
  }
  Words words = WordsOf(state, inputs);
  report.progressing = words.progressing;
  report.reason = std::move(words.reason);
  report.message = std::move(words.message);
  AddNumbers(state, inputs, report);
  return report;
}

}  // namespace optcache::coordination
