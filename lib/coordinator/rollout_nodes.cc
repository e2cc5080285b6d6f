// Answers the questions of a rollout's phases (rollout.cc) from what nodes have said.
//
// The idea: a node reports its trials by id. An id names the revision, what was asked (to follow
// it, to compare with it, to forecast jobs) and the try, so an answer to another question is not
// taken for this one's. Two trials are compared only if they were derived from the same inputs,
// which the `planned` version names: figures of one node, or digests of several. Of figures, those
// by the newest inputs count. Nothing here changes the state.

#include "coordinator/internal/rollout_nodes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/some_of.h"
#include "coordinator/internal/rollout_observers.h"

namespace optcache::coordination {
namespace {

const TrialReport* FindTrial(const RolloutNode& node, std::string_view id) {
  const auto found = std::ranges::find(node.trials, id, &TrialReport::id);
  return found == node.trials.end() ? nullptr : &*found;
}

struct BothTrials {
  const TrialReport* update = nullptr;
  const TrialReport* current = nullptr;
};

// Those of Prepare; nullopt: the node has not derived both, or not from the same inputs.
std::optional<BothTrials> BothTrialsOf(const RolloutNode& node, const RolloutState& state) {
  const BothTrials both{.update = FindTrial(node, UpdateTrial(state)),
                        .current = FindTrial(node, CurrentTrial(state.current, state.tries))};
  const bool has_both = both.update != nullptr && both.current != nullptr &&
                        both.update->planned == both.current->planned;
  return has_both ? std::optional(both) : std::nullopt;
}

std::string TryText(std::uint32_t tries) {
  return tries == 0 ? "" : fmt::format("-{}", tries);
}

}  // namespace

namespace internal {

Derivation DerivationOf(const RolloutNode& node, const RolloutState& state) {
  Derivation derivation;
  const TrialReport* const update = FindTrial(node, UpdateTrial(state));
  if (update == nullptr) return derivation;
  derivation.error = update->error;
  derivation.update = update->error.empty();
  derivation.complete =
      derivation.update && (state.revision == state.current ||
                            FindTrial(node, CurrentTrial(state.current, state.tries)) != nullptr);
  return derivation;
}

bool SomeHaveBoth(const RolloutState& state, const RolloutInputs& inputs) {
  return std::ranges::any_of(inputs.nodes, [&state](const RolloutNode& node) {
    return BothTrialsOf(node, state).has_value();
  });
}

bool IsHeldAsWorse(const RolloutState& state, const RolloutInputs& inputs) {
  Version newest;
  bool worse = false;
  for (const RolloutNode& node : inputs.nodes) {
    const auto both = BothTrialsOf(node, state);
    const bool counts = both && both->update->error.empty() && both->current->error.empty();
    if (!counts || both->update->planned < newest) continue;
    newest = both->update->planned;
    worse = IsPredictedWorse(both->update->all, both->current->all);
  }
  return worse;
}

bool IsLate(const RolloutState& state, const RolloutInputs& inputs) {
  return state.ready < state.wanted &&
         inputs.now - state.progress_time > inputs.knobs.progress_deadline_seconds;
}

bool IsEpochLate(const RolloutState& state, const RolloutInputs& inputs) {
  return inputs.now - state.epoch_time > inputs.knobs.epoch_deadline_seconds;
}

bool IsOverrun(const ReadingStream& stream, const RolloutState& state) {
  return std::ranges::any_of(state.overrun, [&stream](const PassMark& mark) {
    return mark.stream == stream.id && mark.pass == stream.pass;
  });
}

std::string NamesOf(const std::vector<ReadingStream>& streams) {
  std::vector<std::string> names;
  for (const ReadingStream& stream : streams)
    names.push_back(stream.name);
  return SomeOf(names);
}

bool IsOrdered(const RolloutNode& node, const RolloutState& state) {
  return state.activated &&
         (state.phase == RolloutPhase::kObserve || node.name <= state.activated->up_to);
}

bool SomeStray(const RolloutState& state, const RolloutInputs& inputs) {
  if (state.activated || state.phase == RolloutPhase::kGoBack) return false;
  return std::ranges::any_of(inputs.nodes, [&state](const RolloutNode& node) {
    return !node.revision.empty() && node.revision != state.current;
  });
}

Activation ActivationOf(const RolloutState& state, const RolloutInputs& inputs) {
  const std::uint64_t nodes = inputs.nodes.size();
  Activation activation{
      .goal = inputs.knobs.all_at_once ? nodes : nodes - std::min(inputs.knobs.partition, nodes)};
  for (const RolloutNode& node : inputs.nodes) {
    if (!IsOrdered(node, state)) continue;
    ++activation.ordered;
    if (node.revision != state.revision) continue;
    ++activation.followed;
    if (node.planned) ++activation.ready;
  }
  return activation;
}

bool WentBySameInputs(const RolloutState& state, const RolloutInputs& inputs) {
  std::set<Version> planned;
  const std::string ids[] = {UpdateTrial(state), CurrentTrial(state.current, state.tries)};
  for (const RolloutNode& node : inputs.nodes) {
    for (const TrialReport& trial : node.trials) {
      if (std::ranges::find(ids, trial.id) != std::end(ids)) planned.insert(trial.planned);
    }
  }
  return planned.size() < 2;
}

std::optional<std::string> Disagreement(const RolloutState& state, const RolloutInputs& inputs) {
  std::map<Version, std::map<std::string, std::vector<const RolloutNode*>>> planned;
  const std::string id = UpdateTrial(state);
  for (const RolloutNode& node : inputs.nodes) {
    for (const TrialReport& trial : node.trials) {
      if (trial.id == id && trial.error.empty())
        planned[trial.planned][trial.digest].push_back(&node);
    }
  }
  for (const auto& [version, digests] : planned) {
    if (digests.size() < 2) continue;
    const auto fewer = [](const auto& one, const auto& other) {
      return std::tuple(one.second.size(), other.second.front()->name) <
             std::tuple(other.second.size(), one.second.front()->name);
    };
    const auto odd = std::ranges::min_element(digests, fewer);
    const auto rest = std::ranges::max_element(digests, fewer);
    return fmt::format(
        "from the same inputs node {} derived {:.10} and node {} derived {:.10} ({} of {} nodes)",
        odd->second.front()->name, odd->first, rest->second.front()->name, rest->first,
        odd->second.size(), inputs.nodes.size());
  }
  return std::nullopt;
}

}  // namespace internal

std::string UpdateTrial(const RolloutState& state) {
  return fmt::format("{}@update-{}{}", state.revision, state.start_time, TryText(state.tries));
}

std::string CurrentTrial(std::string_view revision, std::uint32_t tries) {
  return fmt::format("{}@current{}", revision, TryText(tries));
}

std::string JobsTrial(const RolloutState& state) {
  return fmt::format("{}@jobs-{}-{:x}", state.current, state.forecast->jobs,
                     internal::ObserversIn(state.predicted_observers).memory);
}

std::string NodeThatCannotCompare(const RolloutState& state, const RolloutInputs& inputs) {
  for (const RolloutNode& node : inputs.nodes) {
    const TrialReport* const current = FindTrial(node, CurrentTrial(state.current, state.tries));
    if (current == nullptr || current->error.empty()) continue;
    return fmt::format("node {}, which could not derive {}: {}", node.name, state.current,
                       current->error);
  }
  return "";
}

const TrialReport* NewestTrial(const std::vector<RolloutNode>& nodes, std::string_view id) {
  const TrialReport* newest = nullptr;
  for (const RolloutNode& node : nodes) {
    const TrialReport* const trial = FindTrial(node, id);
    if (trial == nullptr || !trial->error.empty()) continue;
    if (newest == nullptr || newest->planned < trial->planned) newest = trial;
  }
  return newest;
}

}  // namespace optcache::coordination
