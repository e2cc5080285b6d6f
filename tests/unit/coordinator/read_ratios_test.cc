#include "coordinator/read_ratios.h"

#include <gtest/gtest.h>

#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

constexpr MonotonicTime kFirstReport{std::chrono::hours(1)};

DatasetReport Covered(std::uint64_t reads, std::uint64_t hits, std::uint64_t planned_hits) {
  return {.name = "vision/imagenet",
          .hits = hits,
          .misses = reads - hits,
          .planned_misses = reads - planned_hits,
          .covered_reads = reads,
          .covered_hits = hits};
}

TEST(RecentReads, AreThoseOfTheLastQuarterOfAnHour) {
  RecentReads recent;
  EXPECT_TRUE(recent.IsDue(kFirstReport));
  EXPECT_EQ(recent.Ratios(Covered(10, 5, 5)), HitRatios{}) << "nothing says when they were read";
  recent.Take({}, kFirstReport);
  EXPECT_FALSE(recent.IsDue(kFirstReport + std::chrono::seconds(59)));
  EXPECT_EQ(recent.Ratios({}), HitRatios{});
  EXPECT_EQ(recent.Ratios(Covered(100, 0, 0)), (HitRatios{.observed = 0, .predicted = 0}));
  for (int minute = 1; minute <= 20; ++minute)
    recent.Take(Covered(100, 0, 0), kFirstReport + std::chrono::minutes(minute));
  EXPECT_EQ(recent.Ratios(Covered(100, 0, 0)), HitRatios{}) << "the cold reads are long ago";
  EXPECT_EQ(recent.Ratios(Covered(300, 90, 100)), (HitRatios{.observed = 0.45, .predicted = 0.5}));
}

TEST(RecentReads, ArePredictedIfAPlanCoversNineOfTen) {
  RecentReads recent;
  recent.Take({}, kFirstReport);
  DatasetReport sum = Covered(90, 60, 63);
  sum.misses += 10;
  EXPECT_EQ(recent.Ratios(sum), (HitRatios{.observed = 60.0 / 90, .predicted = 0.7}))
      << "both of the reads that it covers";
  sum.misses += 1;
  EXPECT_EQ(recent.Ratios(sum), (HitRatios{.observed = 60.0 / 101}));
}

TEST(RecentReads, AreWithoutWhatANodeHadCountedBefore) {
  RecentReads recent;
  recent.Take({}, kFirstReport);
  recent.LeaveOut(Covered(1000, 0, 0));
  EXPECT_EQ(recent.Ratios(Covered(1100, 50, 60)), (HitRatios{.observed = 0.5, .predicted = 0.6}));
}

// Rank 0 of two, on node a, and rank 1, on node b: pass 0 is over, which was cold.
class Ratios : public testing::Test {
 protected:
  void Read(PassNumber pass, Position position) {
    for (const char* node : {"a", "b"}) {
      const Rank rank = node == std::string("a") ? 0 : 1;
      RankReport& report = scenario_.At(node, rank, 2);
      report.epoch = report.pass = pass;
      report.position = position + rank;
      report.last_pass_end = pass == 0 ? 0 : 1000 + rank;
    }
  }
  void Report(const DatasetReport& of_a, const DatasetReport& of_b) {
    scenario_.Node("a").datasets = {of_a};
    scenario_.Node("b").datasets = {of_b};
    scenario_.Second();
  }
  HitRatios Now() { return scenario_.coordinator().Snapshot(scenario_.now()).datasets[0].ratios; }

  Scenario scenario_ = TwoNodes();
};

// Half of it, as each of the two nodes reads.
PassReport HalfPass(PassNumber pass, std::uint64_t hits, std::uint64_t planned_hits) {
  return {.stream = kTrain,
          .pass = pass,
          .hits = hits,
          .misses = 500 - hits,
          .planned_reads = 500,
          .planned_misses = 500 - planned_hits};
}

TEST_F(Ratios, AreOfTheLastWholePass) {
  Report({.name = "vision/imagenet"}, {.name = "vision/imagenet"});
  Read(0, 600);
  DatasetReport a = Covered(300, 30, 60);
  DatasetReport b = Covered(300, 60, 60);
  a.passes = {{.stream = kTrain, .pass = 0, .hits = 30, .misses = 270}};
  b.passes = {{.stream = kTrain, .pass = 0, .hits = 60, .misses = 240}};
  Report(a, b);
  EXPECT_EQ(Now(), (HitRatios{.observed = 0.15, .predicted = 0.2}))
      << "no pass is over: of the last reads";
  Read(2, 100);
  a = Covered(1050, 250, 240);
  b = Covered(1050, 400, 310);
  a.passes = {
      HalfPass(0, 50, 20), HalfPass(1, 150, 190), {.stream = kTrain, .pass = 2, .hits = 50}};
  b.passes = {
      HalfPass(0, 100, 60), HalfPass(1, 250, 220), {.stream = kTrain, .pass = 2, .hits = 50}};
  Report(a, b);
  EXPECT_EQ(Now(), (HitRatios{.observed = 0.4, .predicted = 0.41})) << "of both nodes";
  for (const char* node : {"a", "b"}) {
    RankReport& rank = scenario_.At(node, node == std::string("a") ? 0 : 1, 2);
    rank.position = 600;
    rank.ended = true;
  }
  scenario_.Seconds(1000);
  EXPECT_TRUE(scenario_.dataset().streams.empty());
  EXPECT_EQ(Now(), (HitRatios{.observed = 0.4, .predicted = 0.41})) << "also when the job is over";
}

}  // namespace
}  // namespace optcache::coordination
