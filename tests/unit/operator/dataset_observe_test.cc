#include <gtest/gtest.h>

#include "operator/reconcile/dataset/index_job.h"
#include "operator/reconcile/dataset/observe.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

// What is observed of the index Job of a Dataset whose container has ended so.
IndexJob Ended(const Json& terminated) {
  const Json job = {{"metadata",
                     {{"name", "imagenet-index-1"},
                      {"namespace", "vision"},
                      {"labels", {{kDatasetLabel, "imagenet"}}}}}};
  const Json pod = {
      {"metadata",
       {{"name", "p"}, {"namespace", "vision"}, {"labels", {{"job-name", "imagenet-index-1"}}}}},
      {"status",
       {{"containerStatuses", Json::array({{{"state", {{"terminated", terminated}}}}})}}}};
  const kube::ObjectCache plans({{kByDataset, PlansByDataset()}});
  kube::ObjectCache jobs({{kByDataset, JobsByDataset()}});
  kube::ObjectCache pods({{kByJob, PodsByJob()}});
  jobs.Put(kube::KeyOf(job), job);
  pods.Put(kube::KeyOf(pod), pod);
  const Json dataset = {{"metadata", {{"name", "imagenet"}, {"namespace", "vision"}}}};
  return ObserveDataset(dataset, {.plans = plans, .jobs = jobs, .pods = pods}, /*now=*/0)
      .jobs.at(0);
}

TEST(ObserveDataset, AnEndWithoutAResultHasTheLastWords) {
  const IndexJob job = Ended({{"exitCode", 106},
                              {"reason", "Error"},
                              {"message", "--source is required\nRun with --help.\n"}});
  EXPECT_EQ(job.trouble, "it ended with 106 (Error): --source is required Run with --help.");
}

TEST(ObserveDataset, OfALongLogTheEndIsShown) {
  std::string log;
  for (int line = 0; line < 200; ++line)
    log += "listing…\n";
  const std::string trouble =
      Ended({{"exitCode", 134}, {"reason", "Error"}, {"message", log + "CHECK failed: x"}}).trouble;
  EXPECT_TRUE(trouble.starts_with("it ended with 134 (Error): listing… listing…")) << trouble;
  EXPECT_TRUE(trouble.ends_with("listing… CHECK failed: x")) << trouble;
  EXPECT_LE(trouble.size(), 600U);
}

TEST(ObserveDataset, OfALongWordTheEndIsShownInWholeCharacters) {
  std::string word;
  while (word.size() < 2000)
    word += "…";
  for (std::size_t end = 0; end < 3; ++end) {
    const std::string last_words = std::string(end, 'x') + "\n";
    const std::string trouble =
        Ended({{"exitCode", 1}, {"reason", "Error"}, {"message", word + last_words}}).trouble;
    EXPECT_TRUE(trouble.starts_with("it ended with 1 (Error): ……")) << trouble;
    EXPECT_TRUE(trouble.ends_with("…" + std::string(end, 'x'))) << trouble;
    EXPECT_GE(trouble.size(), 500U);
    EXPECT_LE(trouble.size(), 600U);
  }
}

TEST(ObserveDataset, AnEndWithoutAWordHasItsReason) {
  EXPECT_EQ(Ended({{"exitCode", 137}, {"reason", "OOMKilled"}}).trouble,
            "it ended with 137 (OOMKilled)");
  EXPECT_EQ(Ended({{"exitCode", 1}, {"reason", "Error"}, {"message", "\n"}}).trouble,
            "it ended with 1 (Error)");
  EXPECT_EQ(Ended({{"exitCode", 0}, {"message", "{}"}}).trouble, "");
}

}  // namespace
}  // namespace optcache::reconcile
