#include "sidecar/computed/computed_values.h"

#include <gtest/gtest.h>

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

using Ties = ComputedValues::Ties;

class ComputedValuesTest : public testing::Test {
 protected:
  // Whether it is kept.
  bool Offer(SampleId id, ByteCount length, UseTime next, Ties ties = Ties::kGiveWay) {
    BufferRef buffer = values_.Reserve(length, next, ties);
    if (buffer == nullptr) return false;
    values_.Keep(id, std::move(buffer), next);
    return true;
  }
  bool Has(SampleId id) const { return values_.Find(id) != nullptr; }

  FakeArena arena_{100};
  SampleMemory memory_{arena_, 0, [] {}};
  ComputedValues values_{memory_, 30};
};

TEST_F(ComputedValuesTest, WhatIsUsedLastGivesWay) {
  EXPECT_TRUE(Offer(1, 10, 100));
  EXPECT_TRUE(Offer(2, 10, 300));
  EXPECT_TRUE(Offer(3, 10, 200));
  EXPECT_TRUE(Offer(4, 10, 50));
  EXPECT_FALSE(Has(2));
  EXPECT_TRUE(Has(1) && Has(3) && Has(4));
  EXPECT_EQ(values_.evictions(), 1U);
}

TEST_F(ComputedValuesTest, WhatIsItselfUsedLastIsNotKept) {
  for (SampleId id = 0; id < 3; ++id)
    Offer(id, 10, 100 + id);
  EXPECT_EQ(values_.RoomFor(103, Ties::kGiveWay), 0U);
  EXPECT_FALSE(Offer(3, 10, 103));
  EXPECT_FALSE(Offer(4, 10, kNoUse));
  EXPECT_EQ(values_.bytes(), 30U);
}

TEST_F(ComputedValuesTest, WhereUsesAreWorthTheSameNoneGivesWay) {
  for (SampleId id = 0; id < 3; ++id)
    Offer(id, 10, 100 + id);
  EXPECT_FALSE(Offer(3, 10, 1, Ties::kStay));
  values_.SetNextUse(1, kNoUse);
  EXPECT_EQ(values_.RoomFor(1, Ties::kStay), 30U);
  EXPECT_TRUE(Offer(3, 10, 1, Ties::kStay));
  EXPECT_FALSE(Has(1));
}

TEST_F(ComputedValuesTest, NothingGivesWayForWhatHasNoRoomAfterAll) {
  Offer(0, 10, 300);
  Offer(1, 10, 10);
  Offer(2, 10, 20);
  EXPECT_FALSE(Offer(3, 20, 100));
  EXPECT_FALSE(Offer(4, 31, 1));
  EXPECT_TRUE(Has(0) && Has(1) && Has(2));
}

TEST_F(ComputedValuesTest, ReservedRoomCountsUntilItIsGivenBack) {
  const BufferRef reserved = values_.Reserve(25, 5, Ties::kGiveWay);
  ASSERT_NE(reserved, nullptr);
  EXPECT_EQ(values_.RoomFor(1, Ties::kGiveWay), 5U);
  EXPECT_FALSE(Offer(1, 10, 1));
  values_.GiveBack(reserved);
  EXPECT_TRUE(Offer(1, 10, 1));
}

TEST_F(ComputedValuesTest, WhatIsReadStaysAsItIsWhileItGivesWay) {
  Offer(0, 30, 300);
  const BufferRef reader = values_.Find(0);
  FillSample(0, reader->bytes());
  EXPECT_TRUE(Offer(1, 30, 1)) << "there is room in memory";
  FillSample(1, values_.Find(1)->bytes());
  EXPECT_TRUE(IsSample(0, reader->bytes()));
}

TEST_F(ComputedValuesTest, NoMemoryIsARefusal) {
  FakeArena small(20);
  SampleMemory memory(small, 0, [] {});
  ComputedValues values(memory, 30);
  EXPECT_EQ(values.Reserve(25, 1, Ties::kGiveWay), nullptr);
}

TEST_F(ComputedValuesTest, NewUsesPutThemInANewOrder) {
  for (SampleId id = 0; id < 3; ++id)
    Offer(id, 10, 100 + id);
  values_.SetNextUses({900, 2, 3});
  EXPECT_TRUE(Offer(3, 10, 800));
  EXPECT_FALSE(Has(0));
}

}  // namespace
}  // namespace optcache::sidecar
