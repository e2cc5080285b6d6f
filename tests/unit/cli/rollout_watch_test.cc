#include "cli/rollout/rollout_watch.h"

#include <fcntl.h>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "support/golden_file.h"
#include "support/source_dir.h"
#include "unit/cli/fake_kubectl.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kGet = "get cacheplans.optcache.io/imagenet";

class RolloutWatchTest : public testing::Test {
 protected:
  Result<WatchedRollout> Watch(const std::vector<std::string>& plans, RolloutWatch watch = {}) {
    const FakeKubectl fake({{.words = kGet, .answers = plans},
                            {.words = "get controllerrevisions.apps", .answers = {kRevisions}}});
    watch.name = "imagenet";
    watch.interval = milliseconds(1);
    const UniqueFd out(::open(dir_.Join("out").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600));
    return WatchRollout(fake.kubectl(), watch, out.get());
  }
  std::string Said() const { return ReadFile(dir_.Join("out"), 1_MiB).value_or(""); }

  TempDir dir_;
};

const char* const kAllPrepared = R"({"status": {"nodes": {"prepared": 3}}})";
const char* const kOneFollows = R"({"status": {"nodes": {"prepared": 3, "active": 1}}})";
const char* const kAllFollow = R"({"status": {"nodes": {"prepared": 3, "active": 3},
    "jobs": [{"name": "vision/resnet/imagenet/train", "pass": 8, "position": 128116, "length": 1281167}],
    "rollout": {"marks": [{"stream": "a1", "pass": 7, "passes": 0}]}}})";

TEST_F(RolloutWatchTest, SaysALineEachTimeSomethingChanges) {
  const std::string prepare = PlanAsJson().dump();
  const std::string awaits = PlanIn("Activate", "EpochAwaited", "", kOneFollows).dump();
  const auto rollout =
      Watch({PlanAsJson(R"({"metadata": {"generation": 8}})").dump(), prepare, prepare,
             PlanAsJson(kAllPrepared).dump(), awaits, awaits,
             PlanIn("Activate", "NodesChange", "", kOneFollows).dump(),
             PlanIn("Observe", "Observing", "", kAllFollow).dump(), CompletePlan().dump()});
  ASSERT_TRUE(rollout) << rollout.error().message();
  EXPECT_EQ(rollout->progress.outcome, RolloutOutcome::kSucceeded);
  ExpectGolden(Said(), "cli/rollout/watch.txt");
}

TEST_F(RolloutWatchTest, EndsWithAFailure) {
  const auto rollout = Watch({PlanAsJson().dump(), StoppedPlan().dump()});
  ASSERT_TRUE(rollout) << rollout.error().message();
  EXPECT_EQ(rollout->progress.outcome, RolloutOutcome::kFailed);
  EXPECT_FALSE(Said().contains("BelowPredicted")) << "the caller says it, as an error";
}

TEST_F(RolloutWatchTest, LooksOnceWhereItIsNotToWait) {
  const auto rollout = Watch({PlanAsJson().dump()}, {.until_over = false});
  ASSERT_TRUE(rollout) << rollout.error().message();
  EXPECT_EQ(rollout->progress.outcome, RolloutOutcome::kUnderWay);
  EXPECT_EQ(Said(),
            "Waiting for cacheplan \"imagenet\" rollout to finish: 1 of 3 nodes prepared...\n");
}

TEST_F(RolloutWatchTest, IsQuietForScripts) {
  ASSERT_TRUE(Watch({PlanAsJson().dump(), CompletePlan().dump()}, {.quiet = true}));
  EXPECT_EQ(Said(), "");
}

TEST_F(RolloutWatchTest, GivesUpInTime) {
  const auto rollout = Watch({PlanAsJson().dump()}, {.timeout = milliseconds(50)});
  ASSERT_FALSE(rollout);
  EXPECT_EQ(rollout.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(rollout.error().message().starts_with("timed out waiting for the condition"));
}

TEST_F(RolloutWatchTest, AsksAgainWhereTheClusterDoesNotAnswer) {
  const std::string down = "Error: unable to connect to the server";
  const auto rollout = Watch(
      {down, down, down, down, PlanAsJson().dump(), down, down, down, down, CompletePlan().dump()});
  ASSERT_TRUE(rollout) << rollout.error().message();
  const auto gone = Watch({PlanAsJson().dump(), down});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kUnavailable);
}

TEST_F(RolloutWatchTest, StaysWithItsRevision) {
  EXPECT_TRUE(Watch({CompletePlan().dump()}, {.revision = 4}));
  const auto other = Watch({CompletePlan().dump()}, {.revision = 3});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message(),
            "desired revision (3) is different from the running revision (4)");
}

TEST(RolloutPage, ShowsWhatIsPrinted) {
  const auto page = ReadFile(InRepository("docs/user/rollout.md"), 1_MiB);
  ASSERT_TRUE(page) << page.error().message();
  for (const char* name : {"watch", "predict", "show", "history-stopped", "diff"}) {
    const auto printed = ReadFile(InRepository("tests/golden/cli/rollout/") + name + ".txt", 1_MiB);
    ASSERT_TRUE(printed) << printed.error().message();
    EXPECT_TRUE(page->contains("```\n" + *printed + "```\n")) << name;
  }
  const PlanResource stopped = ReadPlanResource(StoppedPlan().dump()).value();
  const RolloutProgress progress = TellRollout(stopped, ReadPlanRevisions(kRevisions).value());
  EXPECT_TRUE(page->contains("```\nerror: " + progress.line + "\n" + progress.advice + "\n```\n"))
      << progress.line;
}

}  // namespace
}  // namespace optcache::cli
