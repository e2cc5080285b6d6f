// Whole training runs through several nodes' caches in one thread, with the real planner: what the
// nodes do must be what the plan predicted, but for samples that it gave up and that were still
// there.

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cache-node/planning/plan_deriver.h"
#include "cache-node/planning/plan_index.h"
#include "plan/plan.h"
#include "sampler/order_source.h"
#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

constexpr StreamId kRunStream = 42;
constexpr std::uint64_t kSeed = 20261121;

std::vector<std::uint32_t> HeavyTailedSizes(std::size_t count) {
  Random random(kSeed);
  std::vector<std::uint32_t> sizes(count);
  for (auto& size : sizes) {
    const double u = random.Unit();
    size = static_cast<std::uint32_t>(50.0 / (0.02 + u * u));
  }
  return sizes;
}

struct Run {
  std::size_t nodes = 4;
  std::size_t readers = 4;  // the nodes with a rank, the first ones; at most `nodes`
  PassNumber passes = 4;
  double share = 0.3;
  std::vector<std::uint32_t> sizes;
  bool weighted = false;  // drawn with replacement, some more often than others
};

struct Outcome {
  std::uint64_t store_reads = 0;
  ByteCount store_bytes = 0;
  std::uint64_t planned_reads = 0;
  ByteCount planned_bytes = 0;
  ByteCount peak = 0;    // of the fullest node
  ByteCount budget = 0;  // capacity and reserve of one node
  std::uint64_t lost = 0;
  std::uint64_t spare = 0;  // hits on what the plan had given up
};

std::vector<SampleId> OrderOf(const Run& run, sampler::OrderSource& source, PassNumber pass) {
  std::vector<SampleId> order = source.PassOrder(pass).value();
  Random random(kSeed + pass);
  for (SampleId& id : order) {
    if (!run.weighted) break;
    id = static_cast<SampleId>(random.Below(run.sizes.size()));
    if (random.Below(2) == 0) id -= id % 7;
  }
  return order;
}

Outcome Train(const Run& run) {
  const ByteCount total = std::accumulate(run.sizes.begin(), run.sizes.end(), ByteCount{0});
  const auto capacity = static_cast<ByteCount>(static_cast<double>(total) * run.share) / run.nodes;
  const std::size_t readers = std::min(run.readers, run.nodes);
  const auto world = static_cast<std::uint32_t>(readers);
  auto source = sampler::OrderSource::Make({.size = run.sizes.size(), .seed = 7, .world = world});
  auto orders = [&](StreamId, PassNumber pass) -> plan::Order {
    if (pass >= run.passes) return nullptr;
    return std::make_shared<const std::vector<SampleId>>(OrderOf(run, *source, pass));
  };
  plan::Inputs inputs{.sizes = plan::Sizes(run.sizes),
                      .capacities = std::vector<ByteCount>(run.nodes, capacity)};
  inputs.max_moved_bytes_per_sample =
      MaxMovedBytes({{.member = 1, .bytes = capacity}}, inputs.sizes);
  plan::StreamInput stream{.id = kRunStream};
  auto members = std::make_shared<std::vector<wire::MemberId>>();
  for (std::size_t node = 0; node < run.nodes; ++node) {
    if (node < readers) stream.node_of_rank.push_back(static_cast<NodeIndex>(node));
    members->push_back(static_cast<wire::MemberId>(node + 1));
  }
  inputs.streams.push_back(stream);
  auto planner = plan::Planner::Make(inputs, orders);
  EXPECT_TRUE(planner.has_value());

  PlanIndex book;
  LoopbackCluster cluster({.nodes = run.nodes,
                           .capacity = capacity,
                           .reserve = capacity / 50,
                           .sizes = run.sizes,
                           .plans = &book});
  Outcome outcome{.budget = capacity + capacity / 50};
  for (PassNumber pass = 0; pass < run.passes; ++pass) {
    plan::PlanWindow window = planner->Next().value();
    for (auto& plan : window.plans) {
      outcome.planned_reads += plan->stats().store_reads;
      outcome.planned_bytes += plan->stats().store_bytes;
      book.Add({.plan = plan, .members = members});
    }
    for (std::size_t node = 0; node < run.nodes; ++node) {
      for (const SampleId id : window.evictions)
        cluster.cache(node).retention_manager().Evict(id, pass);
      cluster.cache(node).retention_manager().KeepFor(window.passes_ahead);
      cluster.cache(node).retention_manager().OnPassReached(kRunStream, pass);
    }
    const auto order = OrderOf(run, *source, pass);
    for (Position position = 0; position < order.size(); ++position) {
      const SampleId id = order[position];
      if (cluster.Read(position % readers, kRunStream, {pass, position, id})) {
        ++outcome.store_reads;
        outcome.store_bytes += run.sizes[id];
      }
    }
  }
  Counters sum;
  for (std::size_t node = 0; node < run.nodes; ++node) {
    outcome.peak = std::max(outcome.peak, cluster.cache(node).tier().peak());
    const Counters& counters = cluster.cache(node).counters();
    outcome.lost += counters.dropped_in_transit + counters.puts_refused;
    outcome.spare += counters.hits_spare;
    sum.predicted_misses += counters.predicted_misses;
    sum.misses += counters.misses;
    sum.predicted_moved_bytes += counters.predicted_moved_bytes;
    sum.moved_bytes += counters.moved_bytes;
    EXPECT_LE(counters.predicted_local, counters.hits_local) << node;
    EXPECT_LE(counters.predicted_bytes_local, counters.hit_bytes_local) << node;
  }
  EXPECT_EQ(sum.predicted_misses, sum.misses + outcome.spare);
  EXPECT_LE(sum.moved_bytes, sum.predicted_moved_bytes);
  return outcome;
}

TEST(PlannedRun, EqualSizesReadExactlyWhatThePlanPredicts) {
  for (const std::size_t nodes : {1U, 2U, 4U}) {
    const Outcome outcome =
        Train({.nodes = nodes, .sizes = std::vector<std::uint32_t>(2000, 1000)});
    EXPECT_EQ(outcome.store_reads + outcome.spare, outcome.planned_reads) << nodes;
    EXPECT_LE(outcome.peak, outcome.budget) << nodes;
    EXPECT_EQ(outcome.lost, 0U) << nodes;
  }
}

TEST(PlannedRun, NodesThatNobodyReadsThroughAreUsedAsPredicted) {
  for (const std::size_t readers : {1U, 2U}) {
    const Outcome outcome =
        Train({.readers = readers, .sizes = std::vector<std::uint32_t>(2000, 1000)});
    EXPECT_EQ(outcome.planned_reads, 2000U + 3 * 1400) << readers;
    EXPECT_EQ(outcome.store_reads + outcome.spare, outcome.planned_reads) << readers;
    EXPECT_LE(outcome.peak, outcome.budget) << readers;
    EXPECT_EQ(outcome.lost, 0U) << readers;
  }
}

TEST(PlannedRun, HeavyTailedSizesReadExactlyWhatThePlanPredicts) {
  const Outcome outcome = Train({.sizes = HeavyTailedSizes(3000)});
  EXPECT_EQ(outcome.store_reads + outcome.spare, outcome.planned_reads);
  EXPECT_LE(outcome.store_bytes, outcome.planned_bytes);
  EXPECT_LE(outcome.peak, outcome.budget);
  EXPECT_EQ(outcome.lost, 0U);
}

// Where some samples are left out for a pass, what is kept may wait for the one after the next.
TEST(PlannedRun, WeightedDrawsAreReadAsPredicted) {
  for (const std::size_t nodes : {1U, 2U, 4U}) {
    for (const double share : {0.3, 0.6}) {
      const Outcome outcome = Train({.nodes = nodes,
                                     .readers = nodes,
                                     .passes = 6,
                                     .share = share,
                                     .sizes = std::vector<std::uint32_t>(1600, 1000),
                                     .weighted = true});
      EXPECT_EQ(outcome.store_reads + outcome.spare, outcome.planned_reads)
          << nodes << " nodes, " << share;
      EXPECT_LE(outcome.peak, outcome.budget) << nodes;
      EXPECT_EQ(outcome.lost, 0U) << nodes;
    }
  }
}

TEST(PlannedRun, APaddedOrderIsReadAsPredicted) {
  const Outcome outcome = Train({.sizes = std::vector<std::uint32_t>(1999, 1000)});
  EXPECT_EQ(outcome.store_reads + outcome.spare, outcome.planned_reads);
}

TEST(PlannedRun, ADatasetThatFitsIsReadOnce) {
  const Outcome outcome = Train({.share = 1.3, .sizes = std::vector<std::uint32_t>(500, 1000)});
  EXPECT_EQ(outcome.planned_reads, 500U);
  EXPECT_EQ(outcome.planned_reads, 500U);
  EXPECT_EQ(outcome.store_reads, 500U);
  EXPECT_EQ(outcome.lost, 0U);
  EXPECT_EQ(outcome.lost, 0U);
}

// Jobs with orders of their own that are planned as if they went in step, and do not.
std::uint64_t StoreReadsOfJobsApart(std::size_t nodes, PassNumber passes, double share = 1) {
  constexpr std::size_t kJobs = 4;
  constexpr std::uint32_t kSamples = 400;
  constexpr std::uint32_t kBytes = 100;
  std::vector<std::vector<plan::Order>> orders(kJobs);  // by job and pass
  Random random(kSeed);
  for (auto& of_job : orders) {
    for (PassNumber pass = 0; pass < passes; ++pass) {
      std::vector<SampleId> order(kSamples);
      std::iota(order.begin(), order.end(), 0);
      for (std::uint32_t left = kSamples; left > 1; --left)
        std::swap(order[left - 1], order[random.Below(left)]);
      of_job.push_back(std::make_shared<const std::vector<SampleId>>(std::move(order)));
    }
  }
  const auto capacity =
      static_cast<ByteCount>(static_cast<double>(kSamples * kBytes) * share) / nodes;
  const std::vector<std::uint32_t> sizes(kSamples, kBytes);
  plan::Inputs inputs{.sizes = plan::Sizes(sizes),
                      .capacities = std::vector<ByteCount>(nodes, capacity)};
  auto members = std::make_shared<std::vector<wire::MemberId>>();
  std::vector<NodeIndex> node_of_rank;
  for (std::size_t node = 0; node < nodes; ++node) {
    node_of_rank.push_back(static_cast<NodeIndex>(node));
    members->push_back(static_cast<wire::MemberId>(node + 1));
  }
  for (std::size_t job = 0; job < kJobs; ++job)
    inputs.streams.push_back({.id = job + 1, .node_of_rank = node_of_rank});
  auto planner = plan::Planner::Make(inputs, [&](StreamId stream, PassNumber pass) -> plan::Order {
    return pass < passes ? orders[stream - 1][pass] : nullptr;
  });
  EXPECT_TRUE(planner.has_value());
  PlanIndex book;
  LoopbackCluster cluster({.nodes = nodes,
                           .capacity = capacity,
                           .reserve = capacity / 50,
                           .sizes = sizes,
                           .plans = &book});
  while (true) {
    const plan::PlanWindow window = planner->Next().value();
    if (window.plans.empty()) break;
    EXPECT_TRUE(window.evictions.empty());
    for (const auto& plan : window.plans)
      book.Add({.plan = plan, .members = members});
  }
  std::uint64_t store_reads = 0;
  std::vector<std::uint64_t> done(kJobs);
  const std::uint64_t all = std::uint64_t{passes} * kSamples;
  while (std::ranges::any_of(done, [&](std::uint64_t reads) { return reads < all; })) {
    const std::size_t job = std::min(random.Below(kJobs), random.Below(kJobs));  // some are faster
    if (done[job] == all) continue;
    const auto pass = static_cast<PassNumber>(done[job] / kSamples);
    const Position position = done[job]++ % kSamples;
    const SampleId id = (*orders[job][pass])[position];
    store_reads += cluster.Read(position % nodes, job + 1, {pass, position, id}) ? 1U : 0U;
  }
  return store_reads;
}

TEST(PlannedRun, JobsThatDriftApartReadWhatFitsOnce) {
  for (const PassNumber passes : {1U, 2U, 3U})
    EXPECT_EQ(StoreReadsOfJobsApart(1, passes), 400U) << passes << " passes";
}

// What is read at another node than planned may lie at both, so it takes some more room.
TEST(PlannedRun, JobsThatDriftApartOnSeveralNodesReadWhatFitsOnce) {
  for (const PassNumber passes : {1U, 2U, 3U}) {
    EXPECT_LE(StoreReadsOfJobsApart(2, passes, 2.0), 408U) << passes << " passes";
    EXPECT_LE(StoreReadsOfJobsApart(2, passes, 1.25), 420U) << passes << " passes";
  }
}

// Jobs in the middle of a pass, window after window. The next reads of some samples lie farther
// ahead than the plan looks, so that it gives them up.
TEST(PlannedRun, JobsThatBeginInMidPassReadWhatFitsOnce) {
  constexpr std::uint32_t kSamples = 400;
  constexpr std::uint32_t kBytes = 100;
  constexpr PassNumber kPasses = 4;
  const std::vector<std::uint32_t> sizes(kSamples, kBytes);
  plan::Inputs inputs{.sizes = plan::Sizes(sizes), .capacities = {kSamples * kBytes}};
  for (const StreamId stream : {1U, 2U})
    inputs.streams.push_back({.id = stream, .node_of_rank = {0}, .position = kSamples / 2});
  const auto order_of = [&](StreamId stream, PassNumber pass) {
    const auto seed = static_cast<std::int64_t>(kSeed * stream);  // a pass adds its number
    auto source = sampler::OrderSource::Make({.size = kSamples, .seed = seed, .world = 1});
    return source->PassOrder(pass).value();
  };
  auto planner = plan::Planner::Make(inputs, [&](StreamId stream, PassNumber pass) -> plan::Order {
    if (pass >= kPasses) return nullptr;
    return std::make_shared<const std::vector<SampleId>>(order_of(stream, pass));
  });
  PlanIndex book;
  LoopbackCluster cluster(
      {.capacity = kSamples * kBytes, .reserve = kBytes, .sizes = sizes, .plans = &book});
  const auto members = std::make_shared<std::vector<wire::MemberId>>(1, wire::MemberId{1});
  std::uint64_t planned_reads = 0;
  std::uint64_t store_reads = 0;
  for (plan::PlanWindow window = planner->Next().value(); !window.plans.empty();
       window = planner->Next().value()) {
    for (const SampleId id : window.evictions)
      cluster.cache(0).retention_manager().Evict(id, kPasses);
    std::multimap<Position, ReadKey> reads;  // in turns, by how many the job has made
    for (const auto& plan : window.plans) {
      planned_reads += plan->stats().store_reads;
      book.Add({.plan = plan, .members = members});
      const auto [stream, pass] = plan->key();
      for (Position position = plan->begin(); position < plan->end(); ++position)
        reads.emplace(pass * kSamples + position, ReadKey{stream, pass, position});
    }
    for (const auto& [_, key] : reads) {
      const SampleId id = order_of(key.stream, key.pass)[key.position];
      if (cluster.Read(0, key.stream, {key.pass, key.position, id})) ++store_reads;
    }
  }
  EXPECT_GT(planned_reads, kSamples);
  EXPECT_EQ(store_reads, kSamples);
}

TEST(PlannedRun, NoCapacityReadsEverythingEveryPass) {
  const Outcome outcome =
      Train({.passes = 2, .share = 0, .sizes = std::vector<std::uint32_t>(500, 1000)});
  EXPECT_EQ(outcome.store_reads, 1000U);
}

}  // namespace
}  // namespace optcache::node
