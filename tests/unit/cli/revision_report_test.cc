#include "cli/rollout/revision_report.h"

#include <gtest/gtest.h>

#include "support/golden_file.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

class RevisionReportTest : public testing::Test {
 protected:
  PlanResource Plan(const nlohmann::json& json = PlanAsJson()) {
    const auto plan = ReadPlanResource(json.dump());
    EXPECT_TRUE(plan) << plan.error().message();
    return *plan;
  }
  const PlanRevision& Numbered(std::uint64_t number) const {
    return *std::ranges::find(revisions_, number, &PlanRevision::number);
  }

  const std::vector<PlanRevision> revisions_ = ReadPlanRevisions(kRevisions).value();
};

TEST_F(RevisionReportTest, ListsRevisionsAsKubectlDoes) {
  ExpectGolden(HistoryAsTable(Plan(), revisions_), "cli/rollout/history.txt");
  ExpectGolden(HistoryAsTable(Plan(StoppedPlan()), revisions_), "cli/rollout/history-stopped.txt");
  ExpectGolden(HistoryAsJson(Plan(), revisions_), "cli/rollout/history.json");
}

TEST_F(RevisionReportTest, PrintsWhatOneAsksFor) {
  ExpectGolden(RevisionAsText(Plan(), Numbered(4)), "cli/rollout/revision.txt");
}

TEST_F(RevisionReportTest, SaysWhereTwoDiffer) {
  PlanResource plan = Plan();
  plan.update_predicted = {
      .hit_ratio = "0.562", .store_bytes = 61811146752, .moved_bytes = 1 << 30};
  plan.present_predicted = {.hit_ratio = "0.300", .store_bytes = 98784247808, .moved_bytes = 0};
  plan.predicted.hit_ratio = "0.280";  // of passes that are over, when fewer jobs read
  ExpectGolden(DiffAsTable(plan, Numbered(3), Numbered(4)), "cli/rollout/diff.txt");
  ExpectGolden(DiffAsJson(plan, Numbered(3), Numbered(4)), "cli/rollout/diff.json");
  ExpectGolden(DiffAsTable(plan, Numbered(1), Numbered(4)), "cli/rollout/diff-unknown.txt");
  EXPECT_TRUE(DiffAsTable(plan, Numbered(3), Numbered(3)).contains("content is the same"));
  plan.present_predicted = {};
  const std::string unlike = DiffAsTable(plan, Numbered(3), Numbered(4));
  EXPECT_TRUE(unlike.contains("predicted hit ratio             -           56.2 %")) << unlike;
}

TEST_F(RevisionReportTest, TakesNumbersHashesAndNames) {
  const PlanResource plan = Plan();
  for (const char* which : {"4", "93be01d7ac", "93be", "imagenet-93be01d7ac", "update"}) {
    const auto revision = ChooseRevision(plan, revisions_, which);
    ASSERT_TRUE(revision) << which << ": " << revision.error().message();
    EXPECT_EQ(revision->number, 4U) << which;
  }
  EXPECT_EQ(ChooseRevision(plan, revisions_, "current")->number, 3U);
}

TEST_F(RevisionReportTest, RefusesWhatIsNoneOrSeveral) {
  const PlanResource plan = Plan();
  for (const char* which : {"2", "93b", "", "ffff", "Current"}) {
    const auto revision = ChooseRevision(plan, revisions_, which);
    ASSERT_FALSE(revision) << which;
    EXPECT_EQ(revision.error().code(), Code::kNotFound) << which;
    EXPECT_TRUE(revision.error().message().contains("there are 1, 3, 4"));
  }
  std::vector<PlanRevision> twins = revisions_;
  twins.push_back(Numbered(4));
  twins.back().name = "imagenet-93be000000";
  twins.back().number = 5;
  const auto several = ChooseRevision(plan, twins, "93be");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code(), Code::kInvalidArgument);
}

TEST_F(RevisionReportTest, UndoesToTheNewestOfOtherContent) {
  PlanResource plan = Plan();
  EXPECT_EQ(RevisionToUndo(plan, revisions_, 0)->number, 3U);
  EXPECT_EQ(RevisionToUndo(plan, revisions_, 1)->number, 1U);
  plan.content = Numbered(3).content;  // the operator has not seen it yet
  EXPECT_EQ(RevisionToUndo(plan, revisions_, 0)->number, 4U);
  EXPECT_EQ(RevisionToUndo(plan, revisions_, 2).error().code(), Code::kNotFound);
  EXPECT_EQ(RevisionToUndo(plan, {Numbered(3)}, 0).error().code(), Code::kNotFound);
  EXPECT_EQ(RevisionToUndo(plan, {}, 0).error().code(), Code::kNotFound);
}

// Between the two there may be one that was stopped.
TEST_F(RevisionReportTest, UndoesAnUpdateToWhatIsInForce) {
  PlanResource plan = Plan();
  plan.current = Numbered(1).name;
  plan.update = Numbered(4).name;
  EXPECT_EQ(RevisionToUndo(plan, revisions_, 0)->number, 1U);
}

TEST(ContentOf, WritesOutDefaultsAndSortsJobs) {
  const auto parse = [](const char* text) { return kube::Json::parse(text); };
  EXPECT_EQ(ContentOf(parse("{}")),
            parse(R"({"jobs": [], "objective": "Bytes", "retention": "Optimal"})"));
  const kube::Json content =
      ContentOf(parse(R"({"dataset": "d", "retention": "LRU", "rollout": {"paused": true},
                          "jobs": [{"name": "b"}, {"name": "a", "sampler": {"seed": 7}}]})"));
  EXPECT_EQ(content, parse(R"({"jobs": [
        {"name": "a", "sampler": {"dropLast": false, "epochs": 1, "kind": "TorchDistributed", "seed": 7,
                                  "shuffle": true, "worldSize": 1}},
        {"name": "b", "sampler": {"dropLast": false, "epochs": 1, "kind": "TorchDistributed", "seed": 0,
                                  "shuffle": true, "worldSize": 1}}],
        "objective": "Bytes", "retention": "LRU"})"));
}

}  // namespace
}  // namespace optcache::cli
