#include "coordination/internal/rollout_observers.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "dataset/digest.h"

namespace optcache::coordination::internal {
namespace {

std::string DigestOf(std::string_view text) {
  return fmt::format("{:016x}", dataset::KeyOf(text, "observers"));
}

}  // namespace

Observers ObserversOf(const RolloutInputs& inputs) {
  std::string nodes;
  std::string lives;
  for (const RolloutNode& node : inputs.nodes) {
    nodes += node.name + ' ';
    lives += fmt::format("{}/{}/{} ", node.name, node.member, node.incarnation);
  }
  std::set<std::string> jobs;
  for (const ReadingStream& stream : inputs.streams)
    jobs.insert(stream.name);
  return {.nodes = DigestOf(nodes),
          .lives = DigestOf(lives),
          .jobs = DigestOf(fmt::format("{}", fmt::join(jobs, " ")))};
}

std::string TextOf(const Observers& observers) {
  return fmt::format("{}-{}-{}", observers.nodes, observers.lives, observers.jobs);
}

Observers ObserversIn(std::string_view text) {
  const auto next = [&text] {
    const std::string_view part = text.substr(0, text.find('-'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    return std::string(part);
  };
  Observers observers;
  observers.nodes = next();
  observers.lives = next();
  observers.jobs = next();
  return observers;
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
  std::set<StreamId> streams;
  for (const ReadingStream& stream : inputs.streams)
    streams.insert(stream.id);
  std::vector<PassStatus> passes = inputs.passes;
  std::erase_if(passes, [&streams](const PassStatus& pass) {
    return pass.sum.pass == 0 || !streams.contains(pass.sum.stream);
  });
  const LatestPasses latest =
      LatestOf(passes, state.marks.value_or(std::vector<PassMark>()), inputs.mean_sample_bytes);
  if (latest.streams < streams.size()) return;
  if (const auto observed = ObservedOf(latest.sums, latest.streams))
    NotePrevious(state, *observed, inputs);
}

bool AllAreCounted(const RolloutState& state, const RolloutInputs& inputs) {
  return state.marks && std::ranges::all_of(inputs.streams, [&state](const ReadingStream& stream) {
           const auto mark = std::ranges::find(*state.marks, stream.id, &PassMark::stream);
           return mark != state.marks->end() && mark->passes > 0;
         });
}

bool IsComparable(const RolloutState& state, const RolloutInputs& inputs) {
  if (!state.previous || !AllAreCounted(state, inputs)) return false;
  const Observers before = ObserversIn(state.previous_observers);
  const Observers now = ObserversOf(inputs);
  return before.nodes == now.nodes && before.jobs == now.jobs;
}

std::string JobsOf(const RolloutInputs& inputs) {
  if (std::ranges::any_of(inputs.streams, &ReadingStream::gathering)) return {};
  std::set<StreamId> ids;
  for (const ReadingStream& stream : inputs.streams)
    ids.insert(stream.id);
  if (ids.empty()) return {};
  return fmt::format("{:016x}", dataset::KeyOf(fmt::format("{:x}", fmt::join(ids, " ")), "jobs"));
}

}  // namespace optcache::coordination::internal
