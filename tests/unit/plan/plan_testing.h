#pragma once

// Random orders, and runs of a planner that are replayed and checked read by read.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/plan.h"
#include "plan/replay.h"

namespace optcache::plan {

inline std::vector<SampleId> Shuffled(std::uint32_t samples, Random& random) {
  std::vector<SampleId> order(samples);
  std::iota(order.begin(), order.end(), SampleId{0});
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

// As a distributed sampler pads a pass: the order, again from its start, to a multiple of the
// ranks.
inline std::vector<SampleId> Padded(std::vector<SampleId> order, std::size_t ranks) {
  const std::size_t samples = order.size();
  while (order.size() % ranks != 0)
    order.push_back(order[order.size() - samples]);
  return order;
}

inline std::vector<NodeIndex> OneRankANode(NodeIndex nodes) {
  std::vector<NodeIndex> node_of_rank(nodes);
  std::iota(node_of_rank.begin(), node_of_rank.end(), NodeIndex{0});
  return node_of_rank;
}

// Pass after pass of one stream.
using Passes = std::vector<std::vector<SampleId>>;

inline OrderProvider ProvidePasses(std::vector<Passes> streams) {
  return [streams = std::move(streams)](StreamId stream, PassNumber pass) -> Order {
    const Passes& passes = streams[static_cast<std::size_t>(stream)];
    if (pass >= passes.size()) return nullptr;
    return std::make_shared<const std::vector<SampleId>>(passes[pass]);
  };
}

// Plans to the end and replays every read in the order in which it was planned (streams of one rate
// take turns). Fails the test if a node ever holds too much or a sample is not where the plan says.
struct CheckedRun {
  PlanStats replayed;
  PlanStats predicted;
  std::array<ByteCount, 10> missed_bytes_by_tenth{};  // in passes after the first
  std::vector<std::uint64_t> digests;
  std::uint64_t evictions = 0;
  std::uint64_t relocations = 0;
};

inline CheckedRun RunChecked(const Inputs& inputs, const std::vector<Passes>& passes) {
  CheckedRun run;
  Result<Planner> planner = Planner::Make(inputs, ProvidePasses(passes));
  EXPECT_TRUE(planner.has_value()) << planner.error().ToString();
  Replay replay(inputs.sizes, inputs.capacities, inputs.base);
  while (true) {
    const Result<PlanWindow> window = planner->Next();
    EXPECT_TRUE(window.has_value()) << window.error().ToString();
    replay.Evict(window->evictions);
    replay.Relocate(window->relocations);
    run.relocations += window->relocations.size();
    run.evictions += window->evictions.size();
    if (window->plans.empty()) break;
    run.digests.push_back(window->digest);
    std::vector<std::pair<const PassPlan*, Position>> places;  // by stream, where it reads
    std::vector<std::size_t> next_plan(passes.size());
    std::uint64_t left = 0;
    for (const auto& plan : window->plans) {
      left += plan->end() - plan->begin();
      run.predicted += plan->stats();
    }
    places.resize(passes.size(), {nullptr, 0});
    while (left > 0) {
      for (std::size_t stream = 0; stream < passes.size() && left > 0; ++stream) {
        auto& [plan, position] = places[stream];
        if (plan == nullptr || position == plan->end()) {
          plan = nullptr;
          std::size_t& i = next_plan[stream];
          while (i < window->plans.size() && window->plans[i]->key().stream != stream)
            ++i;
          if (i == window->plans.size()) continue;
          plan = window->plans[i++].get();
          position = plan->begin();
        }
        const auto& order = passes[stream][plan->key().pass];
        const std::size_t tenth = position * 10 / order.size();
        const ByteCount missed = replay.stats().store_bytes;
        replay.Read(order[position], plan->ReaderAt(position), plan->At(position), tenth);
        if (plan->key().pass > 0)
          run.missed_bytes_by_tenth[tenth] += replay.stats().store_bytes - missed;
        ++position;
        --left;
      }
    }
    EXPECT_EQ(replay.holders(), planner->holders());
  }
  run.replayed = replay.stats();
  EXPECT_EQ(replay.capacity_exceeded(), 0U);
  EXPECT_EQ(replay.misplaced(), 0U);
  EXPECT_EQ(run.predicted.store_reads, run.replayed.store_reads);
  EXPECT_EQ(run.predicted.store_bytes, run.replayed.store_bytes);
  EXPECT_EQ(run.predicted.local_hits, run.replayed.local_hits);
  EXPECT_EQ(run.predicted.peer_hits, run.replayed.peer_hits);
  EXPECT_EQ(run.predicted.moves, run.replayed.moves);
  EXPECT_EQ(run.predicted.moved_bytes, run.replayed.moved_bytes);
  return run;
}

}  // namespace optcache::plan
