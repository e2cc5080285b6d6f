#include "operator/reconcile/cacheplan/epoch_figures.h"

#include <algorithm>
#include <set>
#include <vector>

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

LatestPasses LatestIn(const std::vector<PassStatus>& passes, const RolloutState& state,
                      const RolloutInputs& inputs) {
  return coordination::LatestOf(passes, state.marks.value_or(std::vector<PassMark>()),
                                inputs.mean_sample_bytes);
}

// Those that ReportOf observes.
LatestPasses PassesObserved(const RolloutState& state, const RolloutInputs& inputs) {
  if (state.phase != RolloutPhase::kObserve) return LatestIn(inputs.passes, state, inputs);
  return {.sums = state.sums.value_or(coordination::PassSums()),
          .streams = coordination::CountedStreams(state.marks.value_or(std::vector<PassMark>()))};
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
    return std::ranges::all_of(*state.marks, [&readers](const PassMark& mark) {
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
                                                const RolloutInputs& inputs, bool orders_known) {
  const LatestPasses observed = PassesObserved(state, inputs);
  if (const auto planned = coordination::PlannedOf(observed.sums, observed.streams)) return planned;
  if (!orders_known || !AreOfReaders(observed, state, inputs)) return std::nullopt;
  return ForecastOfReaders(state);
}

std::optional<EpochNumbers> ForecastInForce(const RolloutState& state,
                                            const RolloutInputs& inputs) {
  const TrialReport* const update =
      coordination::NewestTrial(inputs.nodes, coordination::UpdateTrial(state));
  const TrialReport* const current =
      NewestTrial(inputs.nodes, coordination::CurrentTrial(state.current, state.tries));
  const bool are_alike = update != nullptr && current != nullptr &&
                         update->planned == current->planned &&
                         coordination::NumbersOf(update->all) == state.predicted;
  return are_alike ? coordination::NumbersOf(current->all) : std::nullopt;
}

}  // namespace optcache::reconcile
