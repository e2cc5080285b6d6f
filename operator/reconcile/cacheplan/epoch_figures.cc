#include "operator/reconcile/cacheplan/epoch_figures.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "dataset/digest.h"

namespace optcache::reconcile {
namespace {

using coordination::EpochNumbers;
using coordination::LatestPasses;
using coordination::PassMark;
using coordination::PassStatus;
using coordination::ReadingStream;
using coordination::RolloutInputs;
using coordination::RolloutPhase;
using coordination::RolloutState;
using coordination::TrialReport;

std::vector<PassMark> MarksOfState(const RolloutState& state) {
  return state.marks.value_or(std::vector<PassMark>());
}

LatestPasses LatestIn(const std::vector<PassStatus>& passes, const RolloutState& state,
                      const RolloutInputs& inputs) {
  return coordination::LatestOf(passes, MarksOfState(state), inputs.mean_sample_bytes);
}

// Those that ReportOf observes.
LatestPasses PassesObserved(const RolloutState& state, const RolloutInputs& inputs) {
  if (state.phase != RolloutPhase::kObserve) return LatestIn(inputs.passes, state, inputs);
  return {.sums = state.sums.value_or(coordination::PassSums()),
          .streams = coordination::CountedStreams(MarksOfState(state))};
}

// Are passes of all streams observed that read now, of no others, and none that is a job's first?
// That one depends on what lay there before.
bool AreOfReaders(const LatestPasses& observed, const RolloutState& state,
                  const RolloutInputs& inputs) {
  std::set<StreamId> readers;
  for (const ReadingStream& stream : inputs.streams)
    readers.insert(stream.id);
  if (observed.streams != readers.size()) return false;
  if (state.phase == RolloutPhase::kObserve) {
    return std::ranges::all_of(MarksOfState(state), [&readers](const PassMark& mark) {
      return mark.passes == 0 || readers.contains(mark.stream);
    });
  }
  std::vector<PassStatus> passes = inputs.passes;
  std::erase_if(passes, [&readers](const PassStatus& pass) {
    return pass.sum.pass == 0 || !readers.contains(pass.sum.stream);
  });
  return LatestIn(passes, state, inputs).sums == observed.sums;
}

}  // namespace

std::optional<EpochNumbers> ForecastOfReaders(const RolloutState& state) {
  const bool is_observed =
      state.phase == RolloutPhase::kObserve || state.phase == RolloutPhase::kComplete;
  if (!is_observed || !state.forecast || state.forecast->awaited) return std::nullopt;
  return state.predicted;
}

std::optional<EpochNumbers> PredictedOfObserved(const RolloutState& state,
                                                const RolloutInputs& inputs, bool forecast_counts) {
  const LatestPasses observed = PassesObserved(state, inputs);
  if (const auto planned = coordination::PlannedOf(observed.sums, observed.streams)) return planned;
  if (!forecast_counts || !AreOfReaders(observed, state, inputs)) return std::nullopt;
  return ForecastOfReaders(state);
}

std::string DigestOfReaders(const RolloutInputs& inputs) {
  std::string nodes;
  for (const coordination::RolloutNode& node : inputs.nodes)
    nodes += node.name + ' ';
  std::set<std::string> jobs;
  for (const ReadingStream& stream : inputs.streams)
    jobs.insert(stream.name);
  return fmt::format("{:016x}", dataset::KeyOf(nodes, fmt::format("{}", fmt::join(jobs, " "))));
}

std::optional<EpochNumbers> ForecastInForce(const RolloutState& state,
                                            const RolloutInputs& inputs) {
  const TrialReport* const update =
      coordination::NewestTrial(inputs.nodes, coordination::UpdateTrial(state));
  const TrialReport* const current = coordination::NewestTrial(
      inputs.nodes, coordination::CurrentTrial(state.current, state.tries));
  const bool are_alike = update != nullptr && current != nullptr &&
                         update->planned == current->planned &&
                         coordination::NumbersOf(update->all) == state.predicted;
  return are_alike ? coordination::NumbersOf(current->all) : std::nullopt;
}

}  // namespace optcache::reconcile
