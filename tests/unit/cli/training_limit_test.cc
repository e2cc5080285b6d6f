#include "cli/explain/training_limit.h"

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
constexpr const char* kRead = "optcache_client_samples_total{source=\"local\"}";

std::string For(const std::string& cause) {
  return "optcache_client_wait_cause_seconds_total{dataset=\"d\",cause=\"" + cause + "\"}";
}
std::string Time(const std::string& process, const std::string& state) {
  return "optcache_client_process_seconds_total{process=\"" + process + "\",state=\"" + state +
         "\"}";
}

using Numbers = std::map<std::string, double>;

Limit Judged(const Numbers& grown, const Numbers& gauges = {}) {
  return LimitOf({LooksAt(grown, gauges)}).limit;
}

TEST(TrainingLimit, IsWhatTheTimeOfReadersSays) {
  struct Case {
    const char* what;
    Numbers grown;
    Numbers gauges;
    Limit limit;
  };
  const Case cases[] = {
      {"nothing is read", {{kRead, 0}}, {}, Limit::kNothingRead},
      {"no process tells its time: less than a fifth of 4 s",
       {{kWaited, 0.7}, {For("store"), 0.7}, {kRead, 50}},
       {},
       Limit::kCompute},
      {"and more", {{kWaited, 0.9}, {For("store"), 0.9}, {kRead, 50}}, {}, Limit::kStore},
      {"of eight workers each waits a little: together longer than a fifth of 4 s",
       {{kWaited, 1},
        {For("store"), 1},
        {Time("worker", "waiting"), 1},
        {Time("worker", "working"), 5},
        {Time("worker", "idle"), 10},
        {kRead, 50}},
       {},
       Limit::kCompute},
      {"workers wait for a quarter of their time, and are ahead for the rest",
       {{kWaited, 4},
        {For("store"), 4},
        {Time("worker", "waiting"), 4},
        {Time("worker", "idle"), 12},
        {kRead, 50}},
       {},
       Limit::kCompute},
      {"workers always work",
       {{Time("worker", "waiting"), 0.4},
        {Time("worker", "working"), 7},
        {Time("worker", "idle"), 0.6},
        {kRead, 50}},
       {},
       Limit::kWorkers},
      {"a trainer that has samples in use may compute with them",
       {{Time("trainer", "waiting"), 0.4}, {Time("trainer", "working"), 3.6}, {kRead, 50}},
       {},
       Limit::kCompute},
      {"workers wait, most for the arena",
       {{kWaited, 8},
        {For("store"), 3},
        {For("arena"), 4},
        {For("network"), 1},
        {Time("worker", "waiting"), 8},
        {Time("worker", "working"), 8},
        {kRead, 50}},
       {},
       Limit::kArena},
      {"for other nodes",
       {{kWaited, 2}, {For("network"), 1.5}, {For("node"), 0.5}, {kRead, 50}},
       {},
       Limit::kNetwork},
      {"for the machine's node", {{kWaited, 2}, {For("node"), 2}, {kRead, 50}}, {}, Limit::kNode},
      {"the store is silent",
       {{kWaited, 2}, {For("arena"), 2}, {kRead, 9}},
       {{"optcache_store_breaker_state", 2}},
       Limit::kStoreSilent},
      {"the store is asked for less, so that little fills the arena",
       {{kWaited, 2}, {For("arena"), 2}, {kRead, 9}},
       {{"optcache_store_reads_held_back", 4}},
       Limit::kStoreHoldsBack},
      {"the same, but no rank waits for it",
       {{kRead, 9}},
       {{"optcache_store_reads_held_back", 4}},
       Limit::kCompute},
      {"the first sample has not come, so no wait has ended",
       {},
       {{"optcache_client_batches_waiting", 1}},
       Limit::kStore},
  };
  for (const Case& each : cases)
    EXPECT_EQ(Judged(each.grown, each.gauges), each.limit) << each.what;
  EXPECT_EQ(LimitOf({}).limit, Limit::kNoReader);
}

TEST(TrainingWait, IsNoneWhileWorkersAreAhead) {
  const Numbers behind = {{kWaited, 4},
                          {Time("worker", "waiting"), 4},
                          {Time("worker", "working"), 9},
                          {Time("worker", "idle"), 3}};
  EXPECT_DOUBLE_EQ(TrainingWait(LooksAt(behind)), 0.25) << "and not 4 s of the two ranks' 4 s";
  Numbers ahead = behind;
  ahead[Time("worker", "idle")] = 5;
  EXPECT_DOUBLE_EQ(TrainingWait(LooksAt(ahead)), 0);
  EXPECT_DOUBLE_EQ(TrainingWait(LooksAt({{kWaited, 1}})), 0.25) << "no process tells its time";
}

TEST(TrainingLimit, TellsTheSharesOfTheCauses) {
  const TrainingLimit limit = LimitOf(
      {LooksAt({{kWaited, 2}, {For("store"), 1.5}, {For("arena"), 0.49}, {For("node"), 0.01}})});
  EXPECT_NE(FindingOnLimit(limit).what.find("waited for 50 % of their time (24 % of that for the "
                                            "arena, 75 % for the store); the store limits it"),
            std::string::npos)
      << FindingOnLimit(limit).what;
}

TEST(TrainingLimit, SumsPagesAndForgivesCountersThatBeganAgain) {
  PageLooks restarted = LooksAt({{kWaited, 0}});
  restarted.after =
      ParseMetrics(std::string(kWaited) + " 3\noptcache_loaders_attached 2\n" + kRead + " 40\n");
  const TrainingLimit limit = LimitOf({LooksAt({{kWaited, 1}, {kRead, 60}}), restarted});
  EXPECT_DOUBLE_EQ(limit.waiting, 0.5) << "4 s of 8 s";
  EXPECT_DOUBLE_EQ(limit.samples_per_second, 50);
}

TEST(TrainingLimit, RatesAreThoseOfEachPagesTime) {
  constexpr const char* kReceived = "optcache_store_received_bytes_total";
  PageLooks late = LooksAt({{kRead, 100}, {kReceived, 1000}});
  late.seconds = 10;
  const TrainingLimit limit = LimitOf({LooksAt({{kRead, 100}, {kReceived, 1000}}), late});
  EXPECT_DOUBLE_EQ(limit.samples_per_second, 60);
  EXPECT_DOUBLE_EQ(limit.store_bytes_per_second, 600);
}

TEST(TrainingLimit, EachFindingSaysWhatToDo) {
  for (const Limit limit : {Limit::kWorkers, Limit::kStoreSilent, Limit::kStoreHoldsBack,
                            Limit::kArena, Limit::kStore, Limit::kNetwork, Limit::kNode}) {
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
