#pragma once

// Nodes, jobs and a CachePlan that a rollout is tried on.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/rollout.h"

namespace optcache::coordination {

// Nodes follow what they are told, and derive what they are asked for, when the test lets them.
class RolloutStory {
 public:
  static constexpr std::int64_t kStart = 1'800'000'000;
  static constexpr std::uint64_t kReads = 1000;
  static constexpr ByteCount kSampleBytes = 100;

  RolloutStory() {
    inputs.now = kStart;
    inputs.revision = "old";
    inputs.mean_sample_bytes = kSampleBytes;
    inputs.knobs.max_unavailable = {.amount = 1, .percent = false};
    inputs.knobs.at_epoch_boundary = false;
  }

  RolloutInputs inputs;
  RolloutState state;
  // Store reads of a pass of kReads that a revision is predicted to cost, and costs.
  std::map<std::string, std::uint64_t> predicted = {{"old", 600}, {"new", 400}, {"other", 300}};
  std::map<std::string, std::uint64_t> costs = predicted;
  std::map<std::string, std::string> odd_digests;     // by node
  std::map<std::string, std::string> errors;          // of the update's trial, by node
  std::map<std::string, std::string> present_errors;  // of the other one's

  void Place(const std::vector<std::string>& names) {
    inputs.nodes.clear();
    for (const std::string& name : names)
      inputs.nodes.push_back({.name = name, .revision = inputs.revision, .planned = true});
  }
  RolloutNode& Node(std::string_view name) {
    return *std::ranges::find(inputs.nodes, name, &RolloutNode::name);
  }
  void Read(StreamId id, PassNumber pass) {
    inputs.streams.push_back(
        {.id = id, .name = "vision/job" + std::to_string(id) + "/imagenet/train", .pass = pass});
  }

  // One look; false: nothing was to be written.
  bool Step() {
    const RolloutState before = state;
    state = Advance(state, inputs);
    return state != before;
  }
  void StepUntilStill() {
    while (Step())
      continue;
  }

  void Answer(RolloutNode& node) {
    const RolloutOrders orders = OrdersOf(state, inputs);
    std::erase_if(node.trials, [&](const TrialReport& trial) {
      return std::ranges::none_of(orders.trials,
                                  [&](const auto& asked) { return asked.first == trial.id; });
    });
    for (const auto& [id, revision] : orders.trials) {
      if (std::ranges::find(node.trials, id, &TrialReport::id) != node.trials.end()) continue;
      TrialReport trial{.id = id, .planned = {1, 1}, .digest = "digest of " + id};
      if (odd_digests.contains(node.name)) trial.digest = odd_digests.at(node.name);
      if (id == UpdateTrial(state) && errors.contains(node.name))
        trial.error = errors.at(node.name);
      if (id != UpdateTrial(state) && present_errors.contains(node.name))
        trial.error = present_errors.at(node.name);
      trial.all = {.reads = kReads,
                   .store_reads = predicted.at(revision),
                   .read_bytes = kReads * kSampleBytes,
                   .store_bytes = predicted.at(revision) * kSampleBytes};
      node.trials.push_back(trial);
    }
    const bool updated = std::ranges::find(orders.nodes, node.name) != orders.nodes.end();
    node.revision = updated ? orders.update : orders.current;
  }
  void AllAnswer() {
    for (RolloutNode& node : inputs.nodes)
      Answer(node);
  }

  // Every job reads to the end of its pass and begins another.
  void EndPass() {
    for (ReadingStream& stream : inputs.streams) {
      const bool said = !inputs.nodes.empty() && !inputs.nodes.front().revision.empty();
      const std::uint64_t misses = costs.at(said ? inputs.nodes.front().revision : "old");
      inputs.passes.push_back({.stream = stream.name,
                               .length = kReads,
                               .complete = true,
                               .sum = {.stream = stream.id,
                                       .pass = stream.pass,
                                       .hits = kReads - misses,
                                       .misses = misses,
                                       .miss_bytes = misses * kSampleBytes}});
      ++stream.pass;
    }
  }

  // Looks and answers in turn until nothing changes any more.
  void Run() {
    for (int i = 0; i < 1000; ++i) {
      AllAnswer();
      if (!Step()) return;
    }
  }

  std::string Phase() const { return std::string(PhaseName(state.phase)); }
  std::string Reason() const { return ReportOf(state, inputs).reason; }
  std::vector<std::string> Updated() const { return OrdersOf(state, inputs).nodes; }
};

}  // namespace optcache::coordination
