#include "cli/plan/plan_in_cluster.h"

#include <gtest/gtest.h>

#include "support/golden_file.h"
#include "support/temp_dir.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

TEST(PlanInCluster, ShowsWhatIsPlannedAndWhatWasSeen) {
  const auto revisions = ReadPlanRevisions(kRevisions).value();
  const auto show = [&](const nlohmann::json& plan) {
    return CachePlanAsText(ReadPlanResource(plan.dump()).value(), revisions);
  };
  ExpectGolden(show(CompletePlan()), "cli/rollout/show.txt");
  nlohmann::json update = PlanIn("Activate", "EpochAwaited", "",
                                 R"({"status": {"nodes": {"prepared": 3, "active": 1}}})");
  update["status"]["rollout"]["predicted"] = {{"hitRatio", "0.562"},
                                              {"storeBytesPerEpoch", 61811146752},
                                              {"movedBytesPerEpoch", 1073741824}};
  update["status"]["rollout"]["current"] = {
      {"hitRatio", "0.310"}, {"storeBytesPerEpoch", 97784247808}, {"movedBytesPerEpoch", 0}};
  ExpectGolden(show(update), "cli/rollout/show-update.txt");
}

TEST(PlanInCluster, ShowsOneOfWhichNothingIsKnownYet) {
  const auto plan = ReadPlanResource(
      R"({"kind": "CachePlan", "metadata": {"namespace": "a", "name": "p"}, "spec": {"dataset": "d"}})");
  ASSERT_TRUE(plan) << plan.error().message();
  const std::string text = CachePlanAsText(*plan, {});
  EXPECT_TRUE(text.contains("In force:  none yet")) << text;
  EXPECT_TRUE(text.contains("No training job reads.")) << text;
}

TEST(MeansCachePlan, TellsNamesFromFiles) {
  const TempDir dir;
  dir.Write("imagenet", "");
  EXPECT_TRUE(MeansCachePlan("cacheplan/imagenet"));
  EXPECT_TRUE(MeansCachePlan("no-such-file"));
  for (const std::string& word :
       {dir.Join("imagenet"), std::string("no/such/file"), std::string("missing.safetensors"),
        std::string("No_Name"), std::string("./imagenet"), std::string()})
    EXPECT_FALSE(MeansCachePlan(word)) << word;
}

}  // namespace
}  // namespace optcache::cli
