#include "capacity/saved_bytes.h"

#include <gtest/gtest.h>

#include "unit/simulation/scene.h"

namespace optcache::coordination {
namespace {

constexpr double kOneJob = 1;
constexpr double kVeryMany = 0;

DatasetReads Jobs(std::initializer_list<double> rates) {
  DatasetReads reads;
  for (const double rate : rates)
    reads["team/" + std::to_string(reads.size())] = {.rate = rate, .measured = true};
  return reads;
}

double SavedAt(const DatasetReads& reads, double share, Retention retention = Retention::kOptimal) {
  constexpr ByteCount kSize = 1'000'000;
  return SavedBy(MarginalBenefitOf(reads, kSize, retention),
                 static_cast<ByteCount>(share * static_cast<double>(kSize)));
}

TEST(HitRatio, OfOneJobIsItsShare) {
  for (const double share : {0.0, .02, .3, .55, 1.0})
    EXPECT_NEAR(HitRatio(kOneJob, share), share, 1e-12);
}

TEST(HitRatio, RisesWithCapacityAndJobsEverMoreSlowly) {
  for (double inverse = 0; inverse < 1; inverse += .05) {
    double before = 0;
    double slope = 100;
    for (int percent = 5; percent <= 100; percent += 5) {
      const double hits = HitRatio(inverse, percent / 100.0);
      EXPECT_LE(hits - before, slope + 1e-9) << inverse << " " << percent;
      EXPECT_GE(hits, HitRatio(inverse + .05, percent / 100.0) - 1e-9);
      slope = hits - before;
      before = hits;
    }
    EXPECT_EQ(HitRatio(inverse, 1), 1);
  }
}

// The table, against what the planner's yardstick hits on such jobs.
TEST(HitRatio, IsThatOfTheSimulation) {
  for (const std::uint32_t jobs : {2U, 4U, 8U}) {
    const simulation::Reads run =
        simulation::RunOf({.samples = 5'000, .epochs = 12, .jobs = jobs, .drift = .1});
    for (const double share : {.05, .2, .3, .7, .9}) {
      const auto result = simulation::Simulated(run, simulation::EqualSizes(run, share),
                                                simulation::PolicyKind::kMin);
      EXPECT_NEAR(HitRatio(1.0 / jobs, share), result.hit_ratio, .025) << jobs << " " << share;
    }
  }
  const simulation::Reads run = simulation::RunOf(
      {.workload = simulation::Workload::kReplacement, .samples = 5'000, .epochs = 12});
  for (const double share : {.05, .2, .3, .7, .9}) {
    const auto result = simulation::Simulated(run, simulation::EqualSizes(run, share),
                                              simulation::PolicyKind::kMin);
    EXPECT_NEAR(HitRatio(kVeryMany, share), result.hit_ratio, .025) << share;
  }
}

// docs/benchmarks.md, "2 jobs, speeds 1:2".
TEST(MarginalBenefitOf, ASlowJobCountsForLessThanAJob) {
  EXPECT_NEAR(SavedAt(Jobs({1, 2}), .1) / 3, .301, .01);
  EXPECT_NEAR(SavedAt(Jobs({1, 2}), .3) / 3, .532, .01);
  EXPECT_NEAR(SavedAt(Jobs({1, 2}), .5) / 3, .668, .04);
  EXPECT_NEAR(SavedAt(Jobs({1000, 1}), .3) / 1001, .3, .01);
}

TEST(MarginalBenefitOf, OneJobSavesItsRateTimesItsShare) {
  EXPECT_NEAR(SavedAt(Jobs({500}), .25), 125, 1e-6);
  EXPECT_NEAR(SavedAt(Jobs({500}), 1), 500, 1e-6);
}

TEST(MarginalBenefitOf, WhoReadsWithReplacementHitsAsVeryManyJobs) {
  DatasetReads reads = Jobs({100});
  reads.begin()->second.repeats = true;
  EXPECT_NEAR(SavedAt(reads, .3), 66.6, .1);
  reads["team/two"] = {.rate = 300, .measured = true, .repeats = true};
  EXPECT_NEAR(SavedAt(reads, .3), 4 * 66.6, .4);
}

TEST(MarginalBenefitOf, WithoutAnOrderMemoryHitsItsShare) {
  DatasetReads reads = Jobs({100, 100});
  for (auto& [job, read] : reads)
    read.order_known = false;
  EXPECT_NEAR(SavedAt(reads, .3), 60, 1e-6);
  EXPECT_NEAR(SavedAt(Jobs({100, 100}), .3, Retention::kPin), 60, 1e-6);
}

TEST(MarginalBenefitOf, NothingIsSavedWhereNothingIsReadOrKept) {
  EXPECT_TRUE(MarginalBenefitOf({}, 100, Retention::kOptimal).empty());
  EXPECT_TRUE(MarginalBenefitOf(Jobs({100}), 0, Retention::kOptimal).empty());
  EXPECT_EQ(SavedAt(Jobs({100}), 1, Retention::kNone), 0);
}

TEST(Slopes, AreOfTheBytesBeforeAndAfter) {
  const std::vector<MarginalBenefit> benefit = {{.until = 10, .slope = 3},
                                                {.until = 20, .slope = 1}};
  EXPECT_EQ(LastSlope(benefit, 10), 3);
  EXPECT_EQ(NextSlope(benefit, 10), 1);
  EXPECT_EQ(NextSlope(benefit, 20), 0);
  EXPECT_EQ(SavedBy(benefit, 15), 35);
  EXPECT_EQ(SavedBy(benefit, 50), 40);
}

TEST(ReadsOf, OnOneMachineEachLoaderIsAJob) {
  DatasetStatus dataset{.name = "default/d", .total_samples = 10, .total_bytes = 1000};
  dataset.streams = {{.name = "default/local/d/one", .rate = 5},
                     {.name = "default/local/d/two", .rate = 3}};
  EXPECT_EQ(ReadsOf({.datasets = {dataset}}).at("default/d").size(), 2U);
}

TEST(ReadsOf, LoadersOfOneJobAreOneJobAndEarlierManifestsCount) {
  DatasetStatus dataset{.name = "team/d", .total_samples = 10, .total_bytes = 1000};
  dataset.streams = {{.name = "team/job/d/train", .rate = 5},
                     {.name = "team/job/d/val", .order_known = false, .rate = 3},
                     {.name = "team/new/d/train", .repeats = true}};
  DatasetStatus before = dataset;
  before.streams = {{.name = "other/job/team:d/train", .rate = 2}};
  const ClusterReads reads = ReadsOf({.datasets = {dataset}, .retiring = {before}});
  EXPECT_EQ(reads, (ClusterReads{{"team/d",
                                  {{"other/job", {.rate = 200, .measured = true}},
                                   {"team/job", {.rate = 500, .measured = true}},
                                   {"team/new", {.repeats = true}}}}}));
  EXPECT_EQ(RateOf(reads.at("team/d")), 700);
}

}  // namespace
}  // namespace optcache::coordination
