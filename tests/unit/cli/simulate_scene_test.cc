#include "cli/simulate/simulate_scene.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

std::string ErrorOf(const SimulateFlags& flags) {
  const auto scene = MakeScene(flags);
  if (scene) return "no error";
  EXPECT_EQ(scene.error().code(), Code::kInvalidArgument);
  return scene.error().message();
}

TEST(SimulateScene, HasADefaultForEverything) {
  const auto scene = MakeScene({.samples = 1'000});
  ASSERT_TRUE(scene.has_value()) << scene.error().ToString();
  EXPECT_EQ(scene->run.reads.size(), 12'000U);
  EXPECT_EQ(scene->run.jobs[0].node_of_rank.size(), 4U);
  EXPECT_EQ(scene->policies.size(), simulation::kPolicyNames.size());
  EXPECT_TRUE(scene->cache.stores.empty());
}

TEST(SimulateScene, ReadsNoDevice) {
  EXPECT_EQ(ErrorOf({.trace = "/dev/zero"}), "/dev/zero: a device; give a file, or a pipe");
}

TEST(SimulateScene, TakesRatesSizesAndStores) {
  const auto scene = MakeScene({.samples = 100,
                                .epochs = 2,
                                .jobs = 2,
                                .rates = {1, 3},
                                .sizes = "lognormal",
                                .objective = "Requests",
                                .store_bandwidth = {.5, .7},
                                .store_latency = 9,
                                .policies = {"lru"}});
  ASSERT_TRUE(scene.has_value()) << scene.error().ToString();
  EXPECT_EQ(scene->run.jobs.at(0).rate * 3, scene->run.jobs.at(1).rate - 1);  // 333 and 1000
  EXPECT_FALSE(scene->cache.sizes.equal());
  EXPECT_EQ(scene->cache.objective, plan::Objective::kRequests);
  ASSERT_EQ(scene->cache.stores.size(), 2U);
  EXPECT_EQ(scene->cache.stores[1].latency, 9);
  EXPECT_EQ(scene->policies, std::vector{simulation::PolicyKind::kLru});
}

TEST(SimulateScene, ReadsATraceOnce) {
  const TempDir dir;
  const std::string file = dir.path() + "/reads.txt";
  ASSERT_TRUE(WriteFileAtomically(file, "9\n9\n4\n").ok());
  const auto scene = MakeScene({.trace = file});
  ASSERT_TRUE(scene.has_value()) << scene.error().ToString();
  EXPECT_EQ(scene->run.reads.size(), 3U);
  EXPECT_EQ(scene->run.sample_count, 2U);
  EXPECT_EQ(scene->run.steady_from(), 0U);
  EXPECT_NE(ErrorOf({.trace = file, .pass_length = .5}).find("leave --pass-length at 1"),
            std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(file, "9\nnine\n").ok());
  EXPECT_NE(ErrorOf({.trace = file}).find("reads.txt: trace: line 2"), std::string::npos);
}

TEST(SimulateScene, SaysWhatIsWrong) {
  EXPECT_NE(ErrorOf({.workload = "curriculum"}).find("workload: curriculum; there are permutation"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.policies = {"arc"}}).find("policies: arc; there are optimal, min"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.jobs = 2, .rates = {1}}).find("rates: 1 of them for 2 jobs"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.samples = 0}).find("samples: 0"), std::string::npos);
  EXPECT_NE(ErrorOf({.samples = 200'000'000}).find("at most 100000000"), std::string::npos);
  for (const double part : {0.0, 1.01, std::nan("")})
    EXPECT_NE(ErrorOf({.pass_length = part}).find("pass length: it is a share"), std::string::npos);
  EXPECT_NE(
      ErrorOf({.samples = 100'000, .epochs = 5'000, .pass_length = .01}).find("at most 400000000"),
      std::string::npos);
  EXPECT_NE(ErrorOf({.jobs = 65}).find("jobs: 65; it takes 1 to 64"), std::string::npos);
  EXPECT_NE(ErrorOf({.sizes = "lognormal", .mean_bytes = 0}).find("mean-bytes"), std::string::npos);
  EXPECT_NE(ErrorOf({.workload = "zipf", .zipf_exponent = std::nan("")}).find("zipf-exponent"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.jobs = 3, .apart = .5}).find("apart: it takes 0 and more"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.apart = std::nan("")}).find("apart"), std::string::npos);
  EXPECT_NE(ErrorOf({.samples = 10, .store_latency = 1}).find("set --store-bandwidth, too"),
            std::string::npos);
}

TEST(SimulateScene, TakesAGoalAndThenThePlanAlone) {
  const auto waiting = MakeScene({.samples = 10, .store_bandwidth = {.7}, .until = "waiting=2%"});
  ASSERT_TRUE(waiting.has_value()) << waiting.error().ToString();
  EXPECT_EQ(waiting->goal->of, simulation::Goal::Of::kWaiting);
  EXPECT_EQ(waiting->policies, std::vector{simulation::PolicyKind::kOptimal});
  const auto cost = MakeScene(
      {.samples = 10, .until = "cost=9", .price_per_request = "0.5", .policies = {"lru", "pin"}});
  ASSERT_TRUE(cost.has_value()) << cost.error().ToString();
  EXPECT_EQ(cost->goal->at_most, 9);
  EXPECT_EQ(cost->goal->price, (dataset::StorePrice{.per_request = 0.5}));
  EXPECT_EQ(cost->policies.size(), 2U);
  EXPECT_FALSE(MakeScene({.samples = 10})->goal.has_value());
}

TEST(SimulateScene, SaysWhatAGoalNeedsAndWhatDoesNotCountForIt) {
  EXPECT_NE(ErrorOf({.samples = 10, .until = "waiting=2%"}).find("needs one --store-bandwidth"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.samples = 10, .store_bandwidth = {.5, .7}, .until = "waiting=2%"})
                .find("needs one --store-bandwidth"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf({.samples = 10, .store_bandwidth = {.5}, .until = "cost=1", .price_per_gib = "1"})
          .find("store-bandwidth: what a run costs"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf({.samples = 10, .store_bandwidth = {.5}, .until = "waiting=2%", .price_per_gib = "1"})
          .find("does not depend on prices"),
      std::string::npos);
  EXPECT_NE(ErrorOf({.samples = 10, .price_per_gib = "1"}).find("set --until cost=AMOUNT"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.samples = 10, .until = "cost=1"}).find("set --price-per-request"),
            std::string::npos);
  EXPECT_TRUE(ErrorOf({.samples = 10, .until = "cost=1", .price_per_gib = "-1"})
                  .starts_with("price-per-gib: '-1', allowed: a decimal number above 0"));
  EXPECT_NE(ErrorOf({.samples = 10, .until = "soon"}).find("until: 'soon', allowed: "),
            std::string::npos);
}

TEST(SimulateScene, TakesEachPolicyOnce) {
  const auto scene = MakeScene({.samples = 10, .policies = {"lru", "pin", "lru"}});
  ASSERT_TRUE(scene.has_value()) << scene.error().ToString();
  EXPECT_EQ(scene->policies,
            (std::vector{simulation::PolicyKind::kLru, simulation::PolicyKind::kPin}));
}

}  // namespace
}  // namespace optcache::cli
