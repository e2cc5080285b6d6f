// Which reads begin, and which are held back, where a store is slow.

#include "sidecar/fetch/store_queue.h"
#include "unit/sidecar/store_queue_fixture.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;

// Four places behind a store of 1,000 bytes a second, and a rank that reads ten samples a second.
class DueTest : public StoreQueueFixture {
 protected:
  static constexpr ByteCount kBytesPerSecond = 1000;

  DueTest() : StoreQueueFixture(5000, 4) {
    pace_->SkipTo(100);
    for (int i = 0; i < 60; ++i)
      Compute();
  }
  // For half the time that the trainer takes for a sample.
  void Compute() {
    Advance(milliseconds(50));
    if (++halves_ % 2 == 0) pace_->OnAsked(++front_, clock_.Now());
  }
  // The sample whose id is its size, so many places ahead of the trainer.
  StoreQueue::Ticket Add(ByteCount size, ReadPace::Place ahead, bool urgent = false) {
    return StoreQueueFixture::Add({.id = static_cast<SampleId>(size),
                                   .size = size,
                                   .due = {.pace = pace_, .place = front_ + ahead},
                                   .urgent = urgent});
  }
  // A trainer waits for it whose order is not known.
  StoreQueue::Ticket AddWithoutPace(ByteCount size) {
    return StoreQueueFixture::Add(
        {.id = static_cast<SampleId>(size), .size = size, .urgent = true});
  }
  // So that the speed of the store is known.
  void TakeAllPlaces() {
    for (int i = 0; i < 4; ++i)
      Add(1, 0, true);
    for (int i = 0; i < 20; ++i) {
      Compute();
      store_.arrived += kBytesPerSecond / 20;
      store_.End(0);
      Add(1, 0, true);
    }
    store_.EndAll();
  }

  ReadPace::Place front_ = 100;
  int halves_ = 0;
  std::shared_ptr<ReadPace> pace_ = std::make_shared<ReadPace>();
};

TEST_F(DueTest, ReadsBeginInTheOrderInWhichTheyAreDue) {
  for (const ByteCount size : {1U, 2U, 3U, 4U})
    Add(size, size);
  for (const ByteCount size : {40U, 20U, 10U, 30U})
    Add(size, size);
  Add(15, 15, true);
  for (const SampleId next : {15U, 10U, 20U, 30U}) {
    store_.End(0);
    EXPECT_EQ(store_.pending.back().id, next);
  }
}

TEST_F(DueTest, NothingIsHeldBackBeforeTheSpeedOfTheStoreIsKnown) {
  for (const ByteCount size : {4000U, 1U, 2U, 3U})
    Add(size, 1);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 1, 2, 3}));
}

// Due in five seconds, the large sample takes four.
TEST_F(DueTest, ALargeSampleSharesTheStoreOnlyWhileItComesInTime) {
  TakeAllPlaces();
  Add(4000, 50);
  Add(500, 60);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 500}));
  Add(600, 70);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 500})) << "it would come too late";
  store_.End(1);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 600}));
  store_.End(1);
  Advance(milliseconds(950));
  Add(100, 80);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000})) << "it needs the rest of the time alone";
  store_.End(0);
  EXPECT_EQ(Running(), (std::vector<SampleId>{100}));
}

TEST_F(DueTest, WhatIsDueBeforeALargeSampleIsNotHeldBack) {
  TakeAllPlaces();
  Add(4000, 10);
  Add(500, 60);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000}));
  Add(400, 5);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 400}));
}

TEST_F(DueTest, SmallReadsAlwaysRunSideBySide) {
  TakeAllPlaces();
  for (const ByteCount size : {10U, 11U, 12U, 13U})
    Add(size, 0, true);
  EXPECT_EQ(Running(), (std::vector<SampleId>{10, 11, 12, 13}));
}

// One connection brings a quarter of what four do: the others are not held back for long.
TEST_F(DueTest, NothingIsHeldBackForLongIfThatGainsNothing) {
  TakeAllPlaces();
  for (const ByteCount more : {0U, 1U, 2U, 3U})
    Add(4000 + more, more);
  ASSERT_EQ(Running().size(), 1U);
  for (int i = 0; i < 20; ++i) {
    Advance(milliseconds(100));
    store_.arrived += kBytesPerSecond / 10 * Running().size() / 4;
  }
  EXPECT_EQ(Running().size(), 4U);
}

// Two loaders: what the second waits for is small, or waits a second at most.
TEST_F(DueTest, ALargeSampleThatIsLateHoldsUpUrgentReadsForASecondAtMost) {
  TakeAllPlaces();
  Add(4000, 0, true);
  Advance(milliseconds(10));
  AddWithoutPace(40);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 40}));
  AddWithoutPace(30);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 40})) << "together they are too large";
  store_.arrived += kBytesPerSecond * 9 / 10;
  Advance(milliseconds(900));
  EXPECT_EQ(Running().size(), 2U);
  Advance(milliseconds(100));
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 40, 30}));
}

TEST_F(DueTest, UrgentReadsOfAllLoadersBeginInTheOrderInWhichTheyWereAskedFor) {
  for (const ByteCount size : {1U, 2U, 3U, 4U})
    Add(size, 1);
  AddWithoutPace(10);
  Advance(milliseconds(10));
  Add(20, 0, true);
  store_.End(0);
  EXPECT_EQ(store_.pending.back().id, 10U);
}

TEST_F(DueTest, WhatIsOnlyStagedHoldsUpNoUrgentRead) {
  TakeAllPlaces();
  const auto large = Add(4000, 0);
  Advance(milliseconds(10));
  AddWithoutPace(500);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 500}));
  store_.End(1);
  queue_.MakeUrgent(large);
  Advance(milliseconds(10));
  AddWithoutPace(600);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000})) << "it is asked for now";
}

TEST_F(DueTest, WhatIsNoLongerWantedHoldsUpNoOthers) {
  TakeAllPlaces();
  const auto large = Add(4000, 0, true);
  Advance(milliseconds(10));
  AddWithoutPace(500);
  ASSERT_EQ(Running(), (std::vector<SampleId>{4000}));
  EXPECT_FALSE(queue_.Cancel(large));
  Advance(milliseconds(100));
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 500}));
}

// A trainer gives up the one of three samples that it waits for. The others are only staged.
TEST_F(DueTest, ACancelledSampleLeavesNoUrgencyToThoseThatAreReadWithIt) {
  for (SampleId id = 20; id < 23; ++id)
    dataset_.places[id] = {.object = 0, .begin = id * 1000U, .end = id * 1000U + 1000};
  const auto add = [this](SampleId id, bool urgent) {
    return StoreQueueFixture::Add(
        {.id = id, .size = 1000, .due = {.pace = pace_, .place = front_}, .urgent = urgent});
  };
  TakeAllPlaces();
  for (const ByteCount size : {1U, 2U, 3U, 4U})
    Add(size, 0);
  add(20, false);
  const auto urgent = add(21, true);
  add(22, false);
  for (int i = 0; i < 4; ++i)
    store_.End(0);
  ASSERT_EQ(store_.runs, (std::vector<std::vector<SampleId>>{{20, 21, 22}}));
  Advance(milliseconds(10));
  AddWithoutPace(500);
  ASSERT_EQ(Running(), (std::vector<SampleId>{20, 21, 22})) << "it is asked for later";
  EXPECT_FALSE(queue_.Cancel(urgent));
  Advance(milliseconds(100));
  EXPECT_EQ(Running(), (std::vector<SampleId>{20, 21, 22, 500}));
}

TEST_F(DueTest, ARankThatHasNotAskedYetHoldsUpNoOthers) {
  TakeAllPlaces();
  StoreQueueFixture::Add({.id = 4000, .size = 4000, .due = {.pace = std::make_shared<ReadPace>()}});
  Add(500, 1);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 500}));
}

TEST_F(DueTest, ASlowStoreHoldsUpNoReadsOfAnother) {
  TakeAllPlaces();
  Add(4000, 0);
  Add(500, 60);
  ASSERT_EQ(Running(), (std::vector<SampleId>{4000}));
  FakeDataset other("texts", std::vector<ByteCount>(5000, 10));
  StoreQueueFixture::Add(
      {.id = 600, .size = 600, .due = {.pace = pace_, .place = front_ + 70}, .dataset = &other});
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 600}));
  store_.EndAll();
}

// The large one is due in five seconds and takes four.
TEST_F(DueTest, NeighboursThatWouldComeTooLateAreNotTakenAlong) {
  dataset_.places[2000] = {.object = 0, .begin = 0, .end = 2000};
  dataset_.places[700] = {.object = 0, .begin = 2000, .end = 2700};
  TakeAllPlaces();
  Add(4000, 50);
  Add(2000, 60);
  ASSERT_EQ(Running(), (std::vector<SampleId>{4000}));
  Add(700, 55);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 700}));
}

TEST_F(DueTest, AReadThatIsParkedHoldsUpNoOthers) {
  TakeAllPlaces();
  Add(4000, 0);
  Add(500, 60);
  ASSERT_EQ(Running().size(), 1U);
  store_.pending[0].on_wait(true);
  EXPECT_EQ(Running(), (std::vector<SampleId>{4000, 500}));
}

}  // namespace
}  // namespace optcache::sidecar
