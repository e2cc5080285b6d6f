#include "operator/reconcile/dataset/index_period.h"

#include <set>

#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kNow = 1'795'788'000;

TEST(IndexPeriod, BeginsAtMostAnIntervalAgo) {
  const std::int64_t period = PeriodAt("uid", kHour, kNow);
  EXPECT_LE(period, kNow);
  EXPECT_GT(period, kNow - kHour);
}

TEST(IndexPeriod, LastsForTheInterval) {
  const std::int64_t period = PeriodAt("uid", kHour, kNow);
  const auto begin = static_cast<double>(period);
  EXPECT_EQ(PeriodAt("uid", kHour, begin), period);
  EXPECT_EQ(PeriodAt("uid", kHour, begin + kHour - 0.1), period);
  EXPECT_EQ(PeriodAt("uid", kHour, begin + kHour), period + kHour);
  EXPECT_EQ(PeriodAt("uid", kHour, begin - 0.1), period - kHour);
}

TEST(IndexPeriod, BeginsAtAnotherTimeForEachDataset) {
  std::set<std::int64_t> begins;
  for (int i = 0; i < 100; ++i)
    begins.insert(PeriodAt("uid-" + std::to_string(i), kHour, kNow));
  EXPECT_GT(begins.size(), 90U);
}

TEST(IndexPeriod, IsNoneWithoutAnInterval) {
  EXPECT_EQ(PeriodAt("uid", 0, kNow), 0);
}

TEST(IndexMark, IsWrittenAndRead) {
  const IndexMark plain{.hash = "2697fdd8e7"};
  const IndexMark period{.hash = "2697fdd8e7", .period = kNow};
  EXPECT_EQ(ToText(plain), "2697fdd8e7");
  EXPECT_EQ(ToText(period), "2697fdd8e7-1795788000");
  EXPECT_EQ(ParseIndexMark(ToText(plain)), plain);
  EXPECT_EQ(ParseIndexMark(ToText(period)), period);
  EXPECT_EQ(ParseIndexMark("2697fdd8e7-today"), IndexMark{});
  EXPECT_EQ(ParseIndexMark(""), IndexMark{});
}

TEST(IndexMark, IsDueOnceAPeriod) {
  const auto due = [](std::int64_t last, std::int64_t wanted, std::int64_t interval) {
    return IsDue({.hash = "h", .period = last}, {.hash = "h", .period = wanted}, interval);
  };
  EXPECT_TRUE(due(0, kNow, kHour)) << "the interval is new";
  EXPECT_FALSE(due(kNow, kNow, kHour));
  EXPECT_TRUE(due(kNow - kHour, kNow, kHour));
  EXPECT_FALSE(due(kNow + 600, kNow, kHour)) << "the interval was shorter";
  EXPECT_TRUE(due(kNow + 2 * kHour, kNow, kHour)) << "a clock ran ahead";
  EXPECT_FALSE(due(kNow, 0, 0)) << "the interval is gone";
}

}  // namespace
}  // namespace optcache::reconcile
