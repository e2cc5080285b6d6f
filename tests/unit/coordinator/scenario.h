#pragma once

// A coordinator with nodes that report once a second, for tests.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "coordination/desired_state.h"
#include "coordinator/coordinator.h"

namespace optcache::coordination {

inline constexpr StreamId kTrain = 0x77;
inline constexpr Duration kGathering = CoordinatorOptions{}.stream_gathering;

class Scenario {
 public:
  explicit Scenario(std::vector<DatasetSpec> specs = {Imagenet()},
                    const CoordinatorOptions& options = {})
      : coordinator_(options) {
    coordinator_.SetDatasets(std::move(specs), now_);
    Tick();
  }

  static DatasetSpec Imagenet() {
    return {.name = "vision/imagenet",
            .manifest_digest = "aa",
            .key = 1,
            .samples = 1000,
            .bytes = 1000,
            .capacity = 300};
  }
  static Recipe Shuffled(std::uint32_t world) { return {.size = 1000, .world = world}; }

  // What `node` will report from now on.
  Report& Node(const std::string& node) {
    const auto [found, added] = reports_.try_emplace(node);
    if (added) {
      found->second = {.node = node,
                       .incarnation = ++incarnations_[node],
                       .address = node + ":1",
                       .capacity = 1000};
    }
    return found->second;
  }
  void Restart(const std::string& node) { Node(node).incarnation = ++incarnations_[node]; }
  void Remove(const std::string& node) { reports_.erase(node); }
  // The stream `id` as `node` reports it; added when new.
  StreamReport& Stream(const std::string& node, StreamId id = kTrain) {
    Report& report = Node(node);
    for (StreamReport& stream : report.streams) {
      if (stream.id == id) return stream;
    }
    report.streams.push_back({.id = id,
                              .name = "vision/job/imagenet/" + std::to_string(id),
                              .incarnation = 1,
                              .dataset = "vision/imagenet",
                              .dataset_key = 1});
    return report.streams.back();
  }
  // The rank of that stream; added, attached and at the start of pass 0 when new.
  RankReport& At(const std::string& node, Rank rank, std::uint32_t world, StreamId id = kTrain) {
    StreamReport& stream = Stream(node, id);
    for (RankReport& known : stream.ranks) {
      if (known.rank == rank) return known;
    }
    stream.ranks.push_back({.rank = rank,
                            .recipe = Shuffled(world),
                            .started = true,
                            .start = rank,
                            .position = rank});
    return stream.ranks.back();
  }

  void ReportOf(const std::string& node) {
    Report& report = reports_.at(node);
    const Result<ReportAnswer> answer = coordinator_.OnReport(report, now_);
    ASSERT_TRUE(answer) << answer.error().ToString();
    report.member = answer->member;
  }
  // A second passes: all nodes report, and the coordinator ticks when streams have gathered.
  void Second() {
    now_ += std::chrono::seconds(1) - kGathering;
    for (const auto& [name, report] : reports_)
      ReportOf(name);
    now_ += kGathering;
    Tick();
  }
  void Seconds(int count) {
    for (int i = 0; i < count; ++i)
      Second();
  }
  void Tick() {
    const bool learned = coordinator_.learning();
    coordinator_.OnTick(now_);
    if (learned && !coordinator_.learning()) coordinator_.OnTick(now_);
    for (auto& [name, report] : reports_)
      report.applied = std::max(report.applied, coordinator_.state().version);
  }
  // Every node answers the inventory requests that are open.
  void Answer() {
    const DesiredState asked = state();
    for (const DatasetState* const dataset : AllDatasets(asked)) {
      if (dataset->inventory_wanted == 0) continue;
      for (const auto& [name, report] : reports_) {
        EXPECT_TRUE(coordinator_
                        .OnInventory({.node = name,
                                      .incarnation = report.incarnation,
                                      .dataset = dataset->name,
                                      .request = dataset->inventory_wanted,
                                      .ids = held_[name]})
                        .ok());
      }
    }
    Tick();
  }
  // Until what has happened is planned.
  void Plan() {
    Second();
    Answer();
  }

  void Hold(const std::string& node, std::vector<SampleId> ids) { held_[node] = std::move(ids); }
  MemberId Id(const std::string& node) { return Node(node).member; }
  Coordinator& coordinator() { return coordinator_; }
  const DesiredState& state() const { return coordinator_.state(); }
  const DatasetState& dataset() const { return state().datasets.front(); }
  const DatasetState& retiring() const { return state().retiring.front(); }
  const StreamState& stream() const { return dataset().streams.front(); }
  MonotonicTime now() const { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  Coordinator coordinator_;
  MonotonicTime now_{std::chrono::hours(1)};
  std::map<std::string, Report> reports_;
  std::map<std::string, std::uint64_t> incarnations_;
  std::map<std::string, std::vector<SampleId>> held_;
};

// A stream of two ranks on two nodes, planned.
inline Scenario TwoNodes() {
  Scenario scenario;
  scenario.At("a", 0, 2);
  scenario.At("b", 1, 2);
  scenario.Plan();
  return scenario;
}

}  // namespace optcache::coordination
