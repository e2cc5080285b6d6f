#include "coordinator/rate_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/manual_clock.h"
#include "support/seeds.h"

namespace optcache::coordination {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr RateDemand kHeldBack{.held_back = 1};
constexpr RateDemand kIdle{.askers = 1};

class RateBookTest : public testing::Test {
 protected:
  std::vector<DatasetShare> Answer(MemberId member, std::vector<DatasetDemand> demands) {
    return book_.Answer(
        member, demands,
        [this](const std::string& dataset) -> std::optional<StoreLimits> {
          const auto found = limits_.find(dataset);
          if (found == limits_.end()) return std::nullopt;
          return found->second;
        },
        clock_.Now());
  }
  // The member's share of requests; below 0: it was told nothing.
  double Requests(MemberId member, const RateDemand& demand) {
    const auto shares = Answer(member, {{.dataset = "a/b", .requests = demand}});
    return shares.empty() ? -1 : shares.front().requests;
  }
  void Begin() {
    Answer(99, {});
    clock_.Advance(RateBook::kFirstShares);
  }

  ManualClock clock_;
  std::map<std::string, StoreLimits> limits_ = {{"a/b", {.requests = 100}}};
  RateBook book_;
};

TEST_F(RateBookTest, TellsNothingBeforeAllHaveReported) {
  EXPECT_EQ(Requests(1, kHeldBack), -1);
  clock_.Advance(RateBook::kFirstShares - milliseconds(1));
  EXPECT_EQ(Requests(1, kHeldBack), -1);
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(Requests(1, kHeldBack), 100);
}

TEST_F(RateBookTest, OneThatComesGetsItsPartWhenTheOtherHasBeenToldLess) {
  Begin();
  EXPECT_EQ(Requests(1, kHeldBack), 100);
  EXPECT_EQ(Requests(2, kHeldBack), 5) << "the other has all of it yet: a tenth for both";
  clock_.Advance(seconds(1));
  EXPECT_EQ(Requests(1, kHeldBack), 50);
  EXPECT_EQ(Requests(2, kHeldBack), 50);
}

TEST_F(RateBookTest, WhatOneNoLongerWantsTheOthersHave) {
  Begin();
  Requests(1, kHeldBack);
  Requests(2, kHeldBack);
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(seconds(1));
    Requests(1, kHeldBack);
    Requests(2, kIdle);
  }
  clock_.Advance(seconds(1));
  EXPECT_EQ(Requests(1, kHeldBack), 95);
  EXPECT_EQ(Requests(2, kIdle), 5);
  EXPECT_THAT(Answer(2, {}), IsEmpty());
  clock_.Advance(seconds(1));
  EXPECT_EQ(Requests(1, kHeldBack), 100);
}

TEST_F(RateBookTest, WhatAMemberWasToldStaysItsOwnUntilItHasGone) {
  Begin();
  for (int i = 0; i < 2; ++i) {
    Requests(1, kHeldBack);
    Requests(2, kHeldBack);
    clock_.Advance(seconds(1));
  }
  clock_.Advance(seconds(20));
  EXPECT_EQ(Requests(1, kHeldBack), 50);
  book_.Forget(2);
  EXPECT_EQ(Requests(1, kHeldBack), 100);
}

TEST_F(RateBookTest, DividesEachOfTheRatesThatHaveALimit) {
  limits_["a/b"] = {.bytes = 1000};
  limits_["a/c"] = {.requests = 10, .bytes = 500};
  Begin();
  const std::vector<DatasetDemand> demands = {
      {.dataset = "a/b", .requests = kHeldBack, .bytes = kHeldBack},
      {.dataset = "a/c", .requests = kIdle, .bytes = kHeldBack},
      {.dataset = "a/none", .requests = kIdle, .bytes = kHeldBack}};
  EXPECT_THAT(Answer(1, demands),
              ElementsAre(DatasetShare{.dataset = "a/b", .requests = 0, .bytes = 1000},
                          DatasetShare{.dataset = "a/c", .requests = 10, .bytes = 500}));
}

TEST_F(RateBookTest, ALimitThatIsLoweredOrTakenAwayHoldsWithTheNextAnswer) {
  Begin();
  for (int i = 0; i < 2; ++i) {
    Requests(1, kHeldBack);
    Requests(2, kHeldBack);
    clock_.Advance(seconds(1));
  }
  limits_["a/b"].requests = 40;
  EXPECT_EQ(Requests(1, kHeldBack), 20);
  EXPECT_EQ(Requests(2, kHeldBack), 20);
  limits_["a/b"] = {};
  EXPECT_EQ(Requests(1, kHeldBack), 0) << "no limit";
  limits_["a/b"] = {.requests = 80};
  Requests(1, kHeldBack);
  EXPECT_EQ(Requests(2, kHeldBack), 40);
}

TEST_F(RateBookTest, AsLongAsAMemberThatHasGoneKeepsAllOthersCanBegin) {
  Begin();
  EXPECT_EQ(Requests(1, kHeldBack), 100);
  const RateDemand of_second{.askers = 1, .held_back = 2};
  const RateDemand of_third{.held_back = 4};
  Requests(2, of_second);
  Requests(3, of_third);
  for (int second = 0; second < 30; ++second) {
    EXPECT_NEAR(Requests(2, of_second), 100 * 0.1 * 3 / 8, 1e-9) << second;
    EXPECT_NEAR(Requests(3, of_third), 100 * 0.1 * 4 / 8, 1e-9) << second;
    clock_.Advance(seconds(1));
  }
  book_.Forget(1);
  EXPECT_GT(Requests(3, of_third), 60);
}

TEST_F(RateBookTest, TheReserveIsOfEachRate) {
  limits_["a/b"] = {.requests = 100, .bytes = 1000};
  Begin();
  const std::vector<DatasetDemand> both = {
      {.dataset = "a/b", .requests = kHeldBack, .bytes = kHeldBack}};
  Answer(1, both);
  EXPECT_THAT(Answer(2, both),
              ElementsAre(DatasetShare{.dataset = "a/b", .requests = 5, .bytes = 50}));
}

// Whoever reports in whatever order: what members have been told is never more than the limit, but
// for parts of the reserve, of which none is more than a tenth; and nobody waits without any.
TEST_F(RateBookTest, NeverTellsMoreThanTheLimitAndTheReserve) {
  const std::uint64_t seed = TestSeed(613);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  Begin();
  std::map<MemberId, double> told;
  for (int step = 0; step < 5000; ++step) {
    clock_.Advance(milliseconds(random.Below(400)));
    const auto member = static_cast<MemberId>(1 + random.Below(6));
    if (random.Below(20) == 0) {
      book_.Forget(member);
      told.erase(member);
      continue;
    }
    RateDemand demand{.askers = static_cast<std::uint32_t>(1 + random.Below(3)),
                      .held_back = static_cast<std::uint32_t>(random.Below(3))};
    demand.wanted = random.Unit() * 60 * demand.askers;
    told[member] = Requests(member, demand);
    ASSERT_GE(told[member], 100 * kReservedShare / (6 * 5)) << "step " << step;
    double all = 0;
    for (const auto& [_, share] : told)
      all += share > 100 * kReservedShare ? share : 0;
    ASSERT_LE(all, 100 + 1e-6) << "step " << step;
  }
  double all = 0;
  for (const auto& [member, _] : told)  // from now on nothing changes
    Requests(member, kHeldBack);
  for (auto& [member, share] : told) {
    clock_.Advance(RateBook::kDivideEvery);
    share = Requests(member, kHeldBack);
    all += share;
  }
  EXPECT_LE(all, 100 * (1 + kReservedShare) + 1e-6);
}

}  // namespace
}  // namespace optcache::coordination
