#include "sidecar/prefetch/pass.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

class PassTest : public testing::Test {
 protected:
  // Sample 10 + i stands at index i, and sample 10 once more at the end.
  void SetUp() override {
    auto order = std::make_shared<RankPass>();
    for (SampleId i = 0; i < kLength - 1; ++i)
      order->ids.push_back(10 + i);
    order->ids.push_back(10);
    order->by_id = {0, kLength - 1};
    for (std::uint32_t i = 1; i < kLength - 1; ++i)
      order->by_id.push_back(i);
    order_ = order;
    pass_.SetOrder(order_);
  }
  HeldSampleRef Sample() {
    auto sample = std::make_shared<HeldSample>(fetcher_, dataset_, 1, wire::ReadItem{.id = 0});
    sample->Fetch(memory_.AllocateInArena(10), Urgency::kStaged, [] {});
    return sample;
  }

  static constexpr std::uint32_t kLength = 5000;
  ManualClock clock_;
  Alarms alarms_{clock_};
  FakeDataset dataset_{"images", {10}};
  FakeArena arena_{1000};
  FakeNode node_;
  FakeStore store_;
  SampleMemory memory_{arena_, 0, {}};
  Fetcher fetcher_{node_, store_, alarms_, {}, [] {}};
  std::shared_ptr<const RankPass> order_;
  Pass pass_{{.begin = 0, .end = kLength}, 0};
};

TEST_F(PassTest, PredictsNothingWithoutAnOrder) {
  Pass pass({.begin = 0, .end = 10}, 0);
  EXPECT_FALSE(pass.NextToStage().has_value());
  EXPECT_FALSE(pass.FindUnasked(10).has_value());
  EXPECT_TRUE(pass.Agrees(3, 99)) << "nothing is known that it could contradict";
}

TEST_F(PassTest, StagesNothingBehindItsEndUnlessTheTrainerGoesOn) {
  pass_.StopAt(3, 2);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(pass_.NextToStage(), i);
    pass_.PassOver(i);
  }
  EXPECT_FALSE(pass_.NextToStage().has_value());
  pass_.MarkAsked(4);
  EXPECT_EQ(pass_.end(), 3U) << "workers ask ahead of the trainer";
  EXPECT_FALSE(pass_.NextToStage().has_value());
  EXPECT_TRUE(pass_.Contains(4)) << "it is read, all the same";
  pass_.MarkAsked(5);
  EXPECT_TRUE(pass_.went_on());
  EXPECT_EQ(pass_.end(), kLength);
  EXPECT_EQ(pass_.NextToStage(), 3U);
}

TEST_F(PassTest, AgreesWithWhatStandsThere) {
  EXPECT_TRUE(pass_.Agrees(3, 13));
  EXPECT_FALSE(pass_.Agrees(3, 14));
}

TEST_F(PassTest, FindsTheEarliestPlaceThatNobodyAskedFor) {
  EXPECT_EQ(pass_.FindUnasked(10), 0U);
  pass_.MarkAsked(0);
  EXPECT_EQ(pass_.FindUnasked(10), kLength - 1);
  pass_.MarkAsked(kLength - 1);
  EXPECT_FALSE(pass_.FindUnasked(10).has_value());
  pass_.MarkUnasked(0);
  EXPECT_EQ(pass_.FindUnasked(10), 0U);
}

TEST_F(PassTest, StagesInOrderWhatNobodyAskedFor) {
  EXPECT_EQ(pass_.NextToStage(), 0U);
  pass_.MarkAsked(0);
  pass_.MarkAsked(1);
  EXPECT_EQ(pass_.NextToStage(), 2U);
  pass_.Stage(2, Sample());
  EXPECT_EQ(pass_.NextToStage(), 3U);
  pass_.PassOver(3);
  EXPECT_EQ(pass_.NextToStage(), 4U);
}

TEST_F(PassTest, CountsWhatIsStagedInTheArena) {
  pass_.Stage(0, Sample());
  pass_.Stage(1, Sample());
  EXPECT_EQ(pass_.staged_arena_bytes(), 20U);
  pass_.Unstage(0);
  EXPECT_EQ(pass_.staged_arena_bytes(), 10U);
  pass_.UnstageAll();
  EXPECT_EQ(pass_.staged_arena_bytes(), 0U);
  EXPECT_EQ(memory_.arena_in_use(), 0U);
}

TEST_F(PassTest, TheLowWaterMarkWaitsForTheSlowest) {
  pass_.MarkAsked(1);
  pass_.MarkDelivered(1);
  EXPECT_EQ(pass_.low_water(), 0U);
  pass_.MarkAsked(0);
  pass_.MarkDelivered(0);
  EXPECT_EQ(pass_.low_water(), 2U);
}

TEST_F(PassTest, WhatWasDeliveredMayBeAskedForAgainButIsNotCountedTwice) {
  pass_.MarkAsked(0);
  pass_.MarkDelivered(0);
  pass_.MarkAsked(0);
  pass_.MarkUnasked(0);
  pass_.MarkDelivered(0);
  EXPECT_EQ(pass_.delivered(), 1U);
  EXPECT_FALSE(pass_.FindUnasked(10) == 0U);
}

// A sidecar that was restarted hears of the pass from its start and is asked in its middle.
TEST_F(PassTest, ATrainerThatBeginsInTheMiddleIsStagedForFromThere) {
  pass_.Stage(0, Sample());
  pass_.MarkAsked(3000);
  EXPECT_EQ(pass_.NextToStage(), 3001U);
  EXPECT_EQ(pass_.staged(), 0U) << "what it has left behind is given up";
  EXPECT_EQ(pass_.low_water(), 3000 - Pass::kReorderMin);
}

// As a person does who looks at a picture while the pass goes on.
TEST_F(PassTest, AReadFarAheadLosesNothing) {
  for (std::uint64_t i = 0; i < 3; ++i)
    pass_.Stage(i, Sample());
  pass_.MarkAsked(0);
  for (std::uint64_t i = 1; i < 100; ++i) {
    pass_.MarkAsked(4000 + i);
    if (i % 4 == 0) pass_.MarkAsked(i / 4);
  }
  EXPECT_EQ(pass_.staged(), 3U);
  EXPECT_EQ(pass_.low_water(), 0U);
  EXPECT_EQ(pass_.NextToStage(), 25U) << "for the trainer, where it is";
}

TEST_F(PassTest, AReadFarAheadDoesNotGoOnBeyondTheEnd) {
  pass_.StopAt(100, 10);
  pass_.MarkAsked(0);
  pass_.MarkAsked(4000);
  EXPECT_FALSE(pass_.went_on());
  EXPECT_EQ(pass_.end(), 100U);
}

// Its workers have a batch each, and ask in another order.
TEST_F(PassTest, ATrainerThatSkipsLosesWhatItSkippedAndNoMore) {
  pass_.MarkAsked(0);
  for (const std::uint64_t index : {1U, 1500U, 3010U})
    pass_.Stage(index, Sample());
  for (std::uint64_t i = 0; i < Pass::kSkipReads / 2; ++i) {
    pass_.MarkAsked(3200 + i);
    pass_.MarkAsked(3000 + i);
  }
  EXPECT_EQ(pass_.low_water(), 3000 - Pass::kReorderMin);
  EXPECT_EQ(pass_.staged(), 1U);
  EXPECT_NE(pass_.Staged(3010), nullptr);
  EXPECT_EQ(pass_.NextToStage(), 3000U + Pass::kSkipReads / 2);
}

TEST_F(PassTest, WorkersOutOfOrderLoseNothing) {
  pass_.MarkAsked(Pass::kReorderMin - 1);
  EXPECT_EQ(pass_.NextToStage(), 0U);
}

// 8 workers with two batches of 256 each: the last may ask before the first.
TEST_F(PassTest, ManyWorkersWithLargeBatchesLoseNothing) {
  Pass pass({.begin = 0, .end = kLength}, 16 * 256);
  pass.SetOrder(order_);
  pass.Stage(0, Sample());
  pass.MarkAsked(16 * 256 - 1);
  EXPECT_NE(pass.Staged(0), nullptr);
  EXPECT_EQ(pass.NextToStage(), 1U);
}

TEST_F(PassTest, ADistrustedOrderPredictsNothing) {
  pass_.Stage(0, Sample());
  pass_.Distrust();
  EXPECT_EQ(pass_.staged(), 0U);
  EXPECT_FALSE(pass_.NextToStage().has_value());
  EXPECT_FALSE(pass_.FindUnasked(10).has_value());
  EXPECT_TRUE(pass_.Agrees(3, 99));
}

TEST_F(PassTest, AFewReadsOutOfOrderAreForgivenManyAreNot) {
  int noted = 1;
  while (!pass_.NoteUnpredicted())
    ++noted;
  EXPECT_EQ(noted, 33);
}

}  // namespace
}  // namespace optcache::sidecar
