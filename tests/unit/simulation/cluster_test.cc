// The caches of several nodes together, on runs small enough to follow by hand.

#include "simulation/cluster.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "unit/simulation/scene.h"

namespace optcache::simulation {
namespace {

using From = Outcome::From;

// One job of one rank a node that reads `passes`.
Reads RunOfPasses(std::uint32_t samples, std::uint32_t nodes,
                  const std::vector<std::vector<SampleId>>& passes) {
  const Pace pace{
      .epochs = static_cast<std::uint32_t>(passes.size()), .ranks = nodes, .nodes = nodes};
  return *MakeReads(samples, pace, [&](std::uint32_t, PassNumber pass) { return passes.at(pass); });
}

std::vector<Outcome> Outcomes(Cluster& cluster, const Reads& run) {
  std::vector<Outcome> outcomes;
  for (const Read& read : run.reads) {
    const Result<Outcome> outcome = cluster.Read(read);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().ToString();
    outcomes.push_back(outcome.value_or(Outcome{}));
  }
  return outcomes;
}

TEST(HomedCluster, FindsSamplesAtTheirHomesAndMovesThemThere) {
  const Reads run = RunOfPasses(8, 2, {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}});
  const plan::Sizes sizes = plan::Sizes::Equal(8, 1);
  const auto cluster =
      MakeHomedCluster({.run = run, .sizes = sizes, .capacities = {8, 8}}, NeedsFuture::kNo,
                       [](const Home& home) { return plan::MakePin(home.room); });
  const auto outcomes = Outcomes(*cluster, run);
  for (std::size_t t = 0; t < 8; ++t)
    EXPECT_EQ(outcomes[t].from, From::kStore);
  // In the second pass every sample is read by the other node: what was at its reader's home then
  // is at a peer now, and what was moved is at home.
  for (std::size_t t = 8; t < 16; ++t) {
    const SampleId sample = run.reads[t].sample;
    const auto first = std::find_if(run.reads.begin(), run.reads.end(),
                                    [sample](const Read& r) { return r.sample == sample; });
    const bool moved = outcomes[static_cast<std::size_t>(first - run.reads.begin())].moved;
    EXPECT_EQ(outcomes[t].from, moved ? From::kOwnNode : From::kPeer);
  }
}

TEST(NoPfsCluster, KeepsWhatEachNodeReadsMost) {
  // Node 0 reads the even positions: sample 0 three times; node 1 reads sample 1 three times.
  const Reads run = RunOfPasses(4, 2, {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 1, 2, 0}});
  const plan::Sizes sizes = plan::Sizes::Equal(4, 1);
  const auto cluster = MakeNoPfsCluster({.run = run, .sizes = sizes, .capacities = {1, 1}});
  const auto outcomes = Outcomes(*cluster, run);
  std::vector<From> from;
  for (const Outcome& outcome : outcomes)
    from.push_back(outcome.from);
  using enum Outcome::From;
  EXPECT_EQ(from, (std::vector<From>{kStore, kStore, kStore, kStore,      //
                                     kOwnNode, kOwnNode, kStore, kStore,  //
                                     kOwnNode, kOwnNode, kStore, kPeer}));
}

TEST(PlannedCluster, HitsAreAtTheirReaders) {
  const Reads run = RunOf({.samples = 500, .epochs = 4, .jobs = 3, .nodes = 4});
  const plan::Sizes sizes = plan::Sizes::Equal(500, 1);
  const auto cluster = MakePlannedCluster(
      {.run = run, .sizes = sizes, .capacities = {40, 40, 40, 40}}, plan::Objective::kBytes);
  ASSERT_TRUE(cluster.has_value());
  std::size_t hits = 0;
  for (const Outcome& outcome : Outcomes(**cluster, run)) {
    EXPECT_NE(outcome.from, From::kPeer);
    hits += outcome.from == From::kOwnNode ? 1U : 0U;
  }
  EXPECT_GT(hits, run.reads.size() / 3);
}

// Sample 0 is read again after four passes: farther than the plan looks, so that it gives it up.
TEST(PlannedCluster, KeepsWhatThePlanHasGivenUpWhileThereIsRoom) {
  const Reads run =
      RunOfPasses(4, 1, {{0, 1, 2}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {0, 1, 2}});
  const plan::Sizes sizes = plan::Sizes::Equal(4, 1);
  const auto last_read_of_0 = [&](ByteCount capacity) {
    const auto cluster = MakePlannedCluster({.run = run, .sizes = sizes, .capacities = {capacity}},
                                            plan::Objective::kBytes);
    return Outcomes(**cluster, run)[15].from;
  };
  EXPECT_EQ(last_read_of_0(4), From::kOwnNode);
  EXPECT_EQ(last_read_of_0(3), From::kStore) << "the others need the room";
}

TEST(PlannedCluster, FollowsJobsThatDrift) {
  const Reads run = RunOf({.samples = 2'000, .epochs = 6, .jobs = 2, .drift = 0.1});
  const plan::Sizes sizes = plan::Sizes::Equal(2'000, 1);
  const auto hits = [&](auto cluster) {
    std::size_t count = 0;
    for (const Outcome& outcome : Outcomes(*cluster, run))
      count += outcome.from == From::kStore ? 0U : 1U;
    return static_cast<double>(count) / static_cast<double>(run.reads.size());
  };
  const ClusterInput input{.run = run, .sizes = sizes, .capacities = {600}};
  const double planned = hits(*MakePlannedCluster(input, plan::Objective::kBytes));
  const double oracle = hits(MakeHomedCluster(input, NeedsFuture::kYes, [](const Home& home) {
    return plan::MakeMin(home.room, home.future);
  }));
  EXPECT_LE(planned, oracle + 0.01);  // it may use the transit reserve
  EXPECT_GE(planned, oracle - 0.03);
}

}  // namespace
}  // namespace optcache::simulation
