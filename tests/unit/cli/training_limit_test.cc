#include "cli/training_limit.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

// Two looks, 2 s apart, at a page of two ranks. What `grown` names was 100 before.
PageLooks LooksAt(const std::map<std::string, double>& grown,
                  const std::map<std::string, double>& gauges = {}) {
  std::string before = "optcache_loaders_attached 2\n";
  std::string after = before;
  for (const auto& [name, by] : grown) {
    before += name + " 100\n";
    after += name + " " + std::to_string(100 + by) + "\n";
  }
  for (const auto& [name, value] : gauges)
    after += name + " " + std::to_string(value) + "\n";
  return {.before = ParseMetrics(before), .after = ParseMetrics(after), .seconds = 2};
}

constexpr const char* kWaited = "optcache_client_wait_seconds_total{dataset=\"d\"}";
constexpr const char* kLocal = "optcache_client_samples_total{source=\"local\"}";
constexpr const char* kPeer = "optcache_client_samples_total{source=\"peer\"}";
constexpr const char* kStore = "optcache_client_samples_total{source=\"store\"}";

Limit Judged(const std::map<std::string, double>& grown,
             const std::map<std::string, double>& gauges = {}) {
  return LimitOf({LooksAt(grown, gauges)}).limit;
}

TEST(TrainingLimit, RanksThatHardlyWaitAreLimitedByWhatTheyDo) {
  EXPECT_EQ(Judged({{kWaited, 0.7}, {kStore, 50}}), Limit::kCompute) << "less than a fifth of 4 s";
  EXPECT_EQ(Judged({{kWaited, 0.9}, {kStore, 50}}), Limit::kStore);
  EXPECT_EQ(Judged({{kWaited, 0}, {kStore, 0}}), Limit::kNothingRead);
  EXPECT_EQ(LimitOf({}).limit, Limit::kNoReader);
}

TEST(TrainingLimit, IsWhereTheSamplesCameFromThatRanksWaitedFor) {
  EXPECT_EQ(Judged({{kWaited, 2}, {kPeer, 50}, {kStore, 10}}), Limit::kNetwork);
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 90}, {kStore, 10}}), Limit::kStore);
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 90}}), Limit::kNode);
}

TEST(TrainingLimit, AFewSamplesFromElsewhereAreNotTheLimit) {
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 9999}, {kPeer, 1}}), Limit::kNode);
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 9999}, {kStore, 1}}), Limit::kNode);
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 90}, {kPeer, 5}, {kStore, 5}}), Limit::kNode);
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 90}, {kPeer, 10}}), Limit::kNetwork);
  EXPECT_NE(FindingOnLimit({.limit = Limit::kNetwork}).what.find("; many samples come from"),
            std::string::npos)
      << "a tenth is not most";
}

TEST(TrainingLimit, AStoreInTroubleComesFirst) {
  EXPECT_EQ(Judged({{kWaited, 2}, {kStore, 9}}, {{"optcache_store_breaker_state", 2}}),
            Limit::kStoreSilent);
  EXPECT_EQ(Judged({{kWaited, 2}, {kStore, 9}}, {{"optcache_store_reads_held_back", 4}}),
            Limit::kStoreHoldsBack);
  EXPECT_EQ(Judged({{kWaited, 0}, {kStore, 9}}, {{"optcache_store_reads_held_back", 4}}),
            Limit::kCompute)
      << "no rank waits for it";
}

TEST(TrainingLimit, ARankThatWaitsForItsFirstSampleWaits) {
  EXPECT_EQ(Judged({}, {{"optcache_client_batches_waiting", 1}}), Limit::kStore);
}

TEST(TrainingLimit, SamplesWithoutRoomInTheArenaAreItsFault) {
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 90}, {"optcache_client_copied_samples_total", 9}}),
            Limit::kArena);
  EXPECT_EQ(Judged({{kWaited, 2}, {kLocal, 90}, {"optcache_client_copied_samples_total", 8}}),
            Limit::kNode);
}

TEST(TrainingLimit, SumsPagesAndForgivesCountersThatBeganAgain) {
  PageLooks restarted = LooksAt({{kWaited, 0}});
  restarted.after =
      ParseMetrics(std::string(kWaited) + " 3\noptcache_loaders_attached 2\n" + kStore + " 40\n");
  const TrainingLimit limit = LimitOf({LooksAt({{kWaited, 1}, {kStore, 60}}), restarted});
  EXPECT_DOUBLE_EQ(limit.waiting, 0.5) << "4 s of 8 s";
  EXPECT_DOUBLE_EQ(limit.samples_per_second, 50);
}

TEST(TrainingLimit, EachFindingSaysWhatToDo) {
  for (const Limit limit : {Limit::kStoreSilent, Limit::kStoreHoldsBack, Limit::kArena,
                            Limit::kStore, Limit::kNetwork, Limit::kNode}) {
    const Finding finding = FindingOnLimit({.limit = limit, .waiting = 0.4, .seconds = 2});
    EXPECT_NE(finding.severity, Severity::kOk);
    EXPECT_FALSE(finding.to_do.empty());
    EXPECT_NE(finding.what.find("waited for 40 % of their time"), std::string::npos);
  }
  for (const Limit limit : {Limit::kNoReader, Limit::kNothingRead, Limit::kCompute})
    EXPECT_EQ(FindingOnLimit({.limit = limit}).severity, Severity::kOk);
}

}  // namespace
}  // namespace optcache::cli
