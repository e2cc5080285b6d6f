#include "operator/reconcile/cluster/plan_jobs.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "operator/reconcile/cacheplan/plan_status.h"

namespace optcache::reconcile {
namespace {

using coordination::StreamStatus;

TEST(PlanJobs, RanksThatReadTwoManifestsAreOneJob) {
  const std::vector<PlanJob> jobs = PlanJobsOf({{.name = "v/j/d/train",
                                                 .pass = 3,
                                                 .position = 5,
                                                 .length = 100,
                                                 .world = 8,
                                                 .ranks = 3,
                                                 .rate = 10},
                                                {.name = "v/k/d/train", .world = 1, .ranks = 1},
                                                {.name = "v/j/d/train",
                                                 .pass = 3,
                                                 .position = 9,
                                                 .length = 90,
                                                 .world = 8,
                                                 .ranks = 5,
                                                 .order_known = false,
                                                 .rate = 12,
                                                 .differs = "seed"}});
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].name, "v/j/d/train");
  EXPECT_EQ(jobs[0].position, 5U) << "the first manifest says how far it is";
  EXPECT_EQ(jobs[0].length, 100U);
  EXPECT_EQ(jobs[0].ranks, 8U);
  EXPECT_EQ(jobs[0].rate, 12);
  EXPECT_FALSE(jobs[0].order_known);
  EXPECT_EQ(jobs[0].differs, "seed");
}

TEST(PlanJobs, TheStatusSaysHowTheOrderOfAJobIsMade) {
  StreamStatus stream{
      .name = "v/j/d/train", .recipe = "torch-random size=9", .epoch = 7, .epoch_step = 0};
  const auto described = [&] { return DescribeJob(PlanJobsOf({stream})[0], {}); };
  EXPECT_EQ(described()["recipe"], "torch-random size=9");
  EXPECT_EQ(described()["epoch"], 7);
  EXPECT_EQ(described()["epochStep"], 0);
  stream.recipe.append(kMaxJobRecipe, ' ');
  EXPECT_FALSE(described().contains("recipe")) << "too long";
  stream.recipe.clear();
  EXPECT_FALSE(described().contains("epoch")) << "of no recipe";
  stream.recipe = "torch-random size=9";
  stream.conflict = "seed: 0 (rank 0), 1 (rank 3)";
  EXPECT_FALSE(described().contains("recipe")) << "its ranks do not agree";
}

TEST(PlanJobs, SayWhoReadsAnEarlierManifest) {
  StreamStatus stream{.name = "v/j/d/train", .world = 8, .ranks = 2};
  EXPECT_FALSE(DescribeJob(PlanJobsOf({stream})[0], {}).contains("earlierManifest"));
  EXPECT_EQ(DescribeJob(PlanJobsOf({}, {stream})[0], {})["earlierManifest"], true);
  EXPECT_TRUE(PlanJobsOf({stream}, {stream})[0].reads_earlier) << "some of its ranks";
  StreamStatus gone_over = stream;
  gone_over.ranks_lost = 2;
  EXPECT_FALSE(PlanJobsOf({stream}, {gone_over})[0].reads_earlier);
}

TEST(PlanJobs, RanksKnownOfBothManifestsCountOnce) {
  const StreamStatus stream{.name = "v/j/d/train", .world = 8, .ranks = 8};
  EXPECT_EQ(PlanJobsOf({stream, stream})[0].ranks, 8U);
}

TEST(PlanJobs, RanksThatAreNotHeardOfDoNotCount) {
  const StreamStatus some{.name = "v/j/d/train", .world = 8, .ranks = 8, .ranks_lost = 3};
  const StreamStatus all{.name = "v/gone/d/train", .world = 2, .ranks = 2, .ranks_lost = 2};
  const std::vector<PlanJob> jobs = PlanJobsOf({some, all});
  EXPECT_EQ(jobs[0].ranks, 5U);
  EXPECT_EQ(jobs[1].ranks, 0U);
  EXPECT_EQ(DescribeJob(jobs[1], {})["ranks"], 0) << "plan suggest leaves it out";
}

TEST(PlanJobs, OnlyTheLatestLifeOfAStreamCounts) {
  const StreamStatus before{.name = "v/j/d/train", .incarnation = 1, .pass = 9, .ranks = 4};
  const StreamStatus now{.name = "v/j/d/train", .incarnation = 2, .pass = 0, .ranks = 1};
  for (const auto& streams : {std::vector{before, now}, std::vector{now, before}}) {
    const std::vector<PlanJob> jobs = PlanJobsOf(streams);
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].pass, 0U);
    EXPECT_EQ(jobs[0].ranks, 1U);
  }
}

TEST(PlanJobs, NamesAreCutBetweenCharactersAndStayDifferent) {
  std::string name = "v/j";
  while (name.size() < 1000)
    name += "\xe2\x82\xac";
  const std::vector<PlanJob> jobs = PlanJobsOf({{.name = name + "a"}, {.name = name + "b"}});
  ASSERT_EQ(jobs.size(), 1U) << "a list by name takes no two of one name";
  EXPECT_LE(jobs[0].name.size(), kMaxJobName);
  EXPECT_TRUE(IsUtf8(jobs[0].name));
}

}  // namespace
}  // namespace optcache::reconcile
