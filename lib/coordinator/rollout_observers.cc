// Names what figures of a rollout are of, and says whether two of them may be compared.
//
// The idea: a hit ratio depends on the nodes, on the jobs that read and on the memory. All of that
// is put into a short text, the observers: a digest of the nodes' names, one of their runs, one of
// the jobs, and the bytes. The state of the rollout keeps it beside each figure. Figures are
// comparable if their observers are alike. Memory that differs by a 64th or less counts as the
// same, because it is divided again all the time.
//
// FaultOf is the verdict of a rollout: first against what was predicted, then against what was
// observed before. Each comparison is left out where it would compare unlike things.

#include "coordinator/internal/rollout_observers.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "coordination/revisions.h"
#include "dataset/digest.h"

namespace optcache::coordination::internal {
namespace {

constexpr std::uint64_t kMillionthsInPermille = 1000;
constexpr ByteCount kMemoryParts = 64;  // one of these more or less is the same

std::string DigestOf(std::string_view text) {
  return fmt::format("{:016x}", dataset::KeyOf(text, "observers"));
}

std::string DigestOf(const std::set<std::string>& jobs) {
  return DigestOf(fmt::format("{}", fmt::join(jobs, " ")));
}

// A job that is started again on another list of samples is another one.
std::string ReadBy(const ReadingStream& stream) {
  return stream.name + '@' + stream.manifest;
}

// Of the streams that a forecast is of, each generation of a job for itself; empty: there is none,
// or ranks of some are still to come.
std::string DigestOfForecast(const RolloutInputs& inputs) {
  if (std::ranges::any_of(inputs.streams, &ReadingStream::gathering)) return {};
  std::set<StreamId> ids;
  for (const ReadingStream& stream : inputs.streams) {
    if (stream.order_known) ids.insert(stream.id);
  }
  if (ids.empty()) return {};
  return fmt::format("{:016x}", dataset::KeyOf(fmt::format("{:x}", fmt::join(ids, " ")), "jobs"));
}

// The passes that AreOfReaders is about; nullopt: a job that reads has ended none.
std::optional<LatestPasses> LatestOfReaders(const RolloutState& state,
                                            const RolloutInputs& inputs) {
  std::set<StreamId> streams;
  for (const ReadingStream& stream : inputs.streams)
    streams.insert(stream.id);
  std::vector<PassStatus> passes = inputs.passes;
  std::erase_if(passes, [&](const PassStatus& pass) {
    const auto mark = std::ranges::find(state.disturbed, pass.sum.stream, &PassMark::stream);
    const bool disturbed = mark != state.disturbed.end() && pass.sum.pass <= mark->pass;
    return disturbed || pass.sum.pass == 0 || !streams.contains(pass.sum.stream);
  });
  LatestPasses latest =
      LatestOf(passes, state.marks.value_or(std::vector<PassMark>()), inputs.mean_sample_bytes);
  if (latest.streams < streams.size()) return std::nullopt;
  return latest;
}

}  // namespace

bool IsSameMemory(ByteCount one, ByteCount other) {
  const auto [less, more] = std::minmax(one, other);
  return more - less <= more / kMemoryParts;
}

Observers ObserversOf(const RolloutInputs& inputs) {
  std::string nodes;
  std::string incarnations;
  std::set<std::string> jobs;
  for (const RolloutNode& node : inputs.nodes) {
    nodes += node.name + ' ';
    incarnations += fmt::format("{}/{}/{} ", node.name, node.member, node.incarnation);
  }
  for (const ReadingStream& stream : inputs.streams)
    jobs.insert(ReadBy(stream));
  return {.nodes = DigestOf(nodes),
          .incarnations = DigestOf(incarnations),
          .jobs = DigestOf(jobs),
          .memory = inputs.memory};
}

Observers ForecastObserversOf(const RolloutInputs& inputs) {
  std::set<std::string> expected(inputs.jobs.begin(), inputs.jobs.end());
  std::set<std::string> jobs;
  for (const ReadingStream& stream : inputs.streams) {
    if (stream.gathering) continue;
    expected.erase(std::string(JobOf(stream.name)));
    if (stream.order_known) jobs.insert(ReadBy(stream));
  }
  for (const std::string& job : expected)
    jobs.insert("expected/" + job);
  Observers observers = ObserversOf(inputs);
  observers.jobs = DigestOf(jobs);
  return observers;
}

std::string TextOf(const Observers& observers) {
  return fmt::format("{}-{}-{}-{:x}", observers.nodes, observers.incarnations, observers.jobs,
                     observers.memory);
}

Observers ObserversIn(std::string_view text) {
  const auto next = [&text] {
    const std::string_view part = text.substr(0, text.find('-'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    return std::string(part);
  };
  Observers observers;
  observers.nodes = next();
  observers.incarnations = next();
  observers.jobs = next();
  std::from_chars(text.data(), text.data() + text.size(), observers.memory, 16);
  return observers;
}

bool AreAlike(const Observers& one, const Observers& other) {
  return one.nodes == other.nodes && one.jobs == other.jobs &&
         IsSameMemory(one.memory, other.memory);
}

bool HoldAlike(const Observers& one, const Observers& other) {
  return one.incarnations == other.incarnations && IsSameMemory(one.memory, other.memory);
}

bool IsPredictedForNow(const RolloutState& state, const RolloutInputs& inputs) {
  return AreAlike(ObserversIn(state.predicted_observers), ForecastObserversOf(inputs));
}

bool IsPredictedOfReaders(const RolloutState& state, const RolloutInputs& inputs) {
  return std::ranges::all_of(inputs.streams, &ReadingStream::order_known) &&
         AreAlike(ObserversIn(state.predicted_observers), ObserversOf(inputs));
}

bool AreOfReaders(const PassSums& sums, const RolloutState& state, const RolloutInputs& inputs) {
  const auto latest = LatestOfReaders(state, inputs);
  return latest && latest->sums == sums;
}

void NotePrevious(RolloutState& state, const ObservedEpoch& observed, const RolloutInputs& inputs) {
  state.previous = observed;
  state.previous_observers = TextOf(ObserversOf(inputs));
}

void ForgetPrevious(RolloutState& state) {
  state.previous.reset();
  state.previous_observers.clear();
}

void ObserveInForce(RolloutState& state, const RolloutInputs& inputs) {
  const auto latest = LatestOfReaders(state, inputs);
  if (!latest) return;
  if (const auto observed = ObservedOf(latest->sums, latest->streams))
    NotePrevious(state, *observed, inputs);
}

bool AllAreCounted(const RolloutState& state, const RolloutInputs& inputs) {
  return state.marks && std::ranges::all_of(inputs.streams, [&state](const ReadingStream& stream) {
           const auto mark = std::ranges::find(*state.marks, stream.id, &PassMark::stream);
           return mark != state.marks->end() && mark->passes > 0;
         });
}

bool IsOfOneKind(const RolloutState& state, const RolloutInputs& inputs) {
  return !state.of_several && AllAreCounted(state, inputs);
}

bool IsComparable(const RolloutState& state, const RolloutInputs& inputs) {
  return state.previous && IsOfOneKind(state, inputs) &&
         AreAlike(ObserversIn(state.previous_observers), ObserversOf(inputs));
}

std::optional<EpochNumbers> PredictedOf(const RolloutState& state, const RolloutInputs& inputs,
                                        std::uint64_t streams) {
  if (const auto planned = PlannedOf(*state.sums, streams)) return planned;
  const bool alike = IsOfOneKind(state, inputs) && IsPredictedOfReaders(state, inputs);
  return alike ? state.predicted : std::nullopt;
}

std::pair<std::string, std::string> FaultOf(const RolloutState& state, const RolloutInputs& inputs,
                                            const ObservedEpoch& observed) {
  const std::optional<EpochNumbers> predicted = PredictedOf(state, inputs, 1);
  const std::uint64_t seen = observed.numbers.hit_permille;
  if (predicted && predicted->hit_permille > seen &&
      (predicted->hit_permille - seen) * kMillionthsInPermille >
          inputs.knobs.below_predicted_millionths) {
    return {"BelowPredicted",
            fmt::format("the hit ratio is {}, predicted was {}, since {}", RatioText(seen),
                        RatioText(predicted->hit_permille), state.since)};
  }
  if (!IsComparable(state, inputs)) return {};
  const std::uint64_t before = state.previous->store_bytes_per_read_tenths;
  const std::uint64_t now = observed.store_bytes_per_read_tenths;
  if (IsMoreBy(now, before, inputs.knobs.worse_than_previous_millionths) &&
      now - before > LeastWorseTenths(inputs.mean_sample_bytes)) {
    return {"WorseThanPrevious",
            fmt::format("a read costs {} bytes of the source, before it was {}, since {}",
                        TenthsText(now), TenthsText(before), state.since)};
  }
  return {};
}

std::optional<JobsForecast> ForecastToAskFor(const RolloutState& state,
                                             const RolloutInputs& inputs) {
  const std::string jobs = DigestOfForecast(inputs);
  const ByteCount memory = ObserversIn(state.predicted_observers).memory;
  const bool is_asked = state.forecast && state.forecast->jobs == jobs &&
                        (state.forecast->awaited || IsSameMemory(memory, inputs.memory));
  if (jobs.empty() || is_asked) return std::nullopt;
  return JobsForecast{.jobs = jobs, .awaited = true};
}

}  // namespace optcache::coordination::internal
