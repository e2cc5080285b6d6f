#include "sidecar/fetch/store_queue.h"

#include "base/random.h"
#include "sidecar/fetch/joined_read.h"
#include "unit/sidecar/store_queue_fixture.h"

namespace optcache::sidecar {
namespace {

class StoreQueueTest : public StoreQueueFixture {
 protected:
  StoreQueueTest() : StoreQueueFixture(10, 2) {}
  StoreQueue::Ticket Add(SampleId id, bool urgent = false) {
    return StoreQueueFixture::Add({.id = id, .urgent = urgent});
  }
};

TEST_F(StoreQueueTest, BoundsHowManyReadsRunAtOnce) {
  for (SampleId id = 0; id < 5; ++id)
    Add(id);
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1}));
  store_.End(0);
  EXPECT_EQ(Running(), (std::vector<SampleId>{1, 2}));
  EXPECT_EQ(queue_.waiting(), 2U);
}

// Of two objects that cannot be read, say; then they are tried again, and one ends while it waits.
TEST_F(StoreQueueTest, ReadsThatWaitForTheirStoreHoldUpNoOthers) {
  for (SampleId id = 0; id < 6; ++id)
    Add(id);
  store_.pending[0].on_wait(true);
  store_.pending[1].on_wait(true);
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1, 2, 3}));
  EXPECT_EQ(queue_.running(), 2U);
  EXPECT_EQ(queue_.parked(), 2U);
  store_.pending[0].on_wait(false);
  EXPECT_EQ(queue_.running(), 3U);
  store_.End(2);
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1, 3})) << "what was parked runs: no other begins";
  store_.End(1);
  store_.End(0);
  EXPECT_EQ(Running(), (std::vector<SampleId>{3, 4}));
  store_.EndAll();
  EXPECT_EQ(queue_.running() + queue_.parked(), 0U);
}

TEST_F(StoreQueueTest, BoundsHowManyStagedReadsAreParked) {
  for (std::size_t i = 0; i < StoreQueue::kParkedStagedMax + 10; ++i)
    Add(static_cast<SampleId>(i % 10));
  for (std::size_t i = 0; i < store_.pending.size(); ++i)
    store_.pending[i].on_wait(true);
  // One more ran already when the bound was reached.
  EXPECT_EQ(queue_.parked(), StoreQueue::kParkedStagedMax + 1);
  EXPECT_EQ(queue_.waiting(), 9U);
  Add(9, true);
  EXPECT_EQ(store_.pending.size(), StoreQueue::kParkedStagedMax + 2);
  store_.EndAll();
  EXPECT_EQ(queue_.parked(), 0U);
}

// A store from which nothing comes, unless a test says so.
class SilentStoreTest : public StoreQueueTest {
 protected:
  SilentStoreTest() {
    for (SampleId id = 0; id < 8; ++id)
      Add(id);
  }
};

TEST_F(SilentStoreTest, ItsReadsGiveTheirPlacesToOthers) {
  Advance(StoreQueue::kSilentAfter - std::chrono::milliseconds(1));
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1}));
  Advance(std::chrono::seconds(1));
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1, 2})) << "other stores may need places, too";
  EXPECT_EQ(queue_.running(), 1U);
  store_.arrived += 10;
  store_.End(2);
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1, 3, 4})) << "by new connections all goes on";
}

TEST_F(SilentStoreTest, LeavesPlacesToOtherStores) {
  FakeDataset other("other", {10, 10});
  StoreQueueFixture::Add({.id = 6, .urgent = true});
  StoreQueueFixture::Add({.id = 7, .urgent = true});
  StoreQueueFixture::Add({.id = 1, .urgent = true, .dataset = &other});
  Advance(StoreQueue::kSilentAfter);
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1, 6, 1}));
  store_.EndAll();
}

TEST_F(SilentStoreTest, GetsFewMoreReads) {
  Advance(StoreQueue::kSilentAfter);
  Advance(std::chrono::minutes(1));
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1, 2}));
  store_.End(0);
  Advance(std::chrono::minutes(1));
  EXPECT_EQ(Running(), (std::vector<SampleId>{1, 2})) << "for the one that ended";
  store_.EndAll();
  EXPECT_EQ(ended_.size(), 8U);
  EXPECT_EQ(queue_.running() + queue_.parked(), 0U);
}

TEST_F(SilentStoreTest, IsNoneWhileBytesCome) {
  for (int i = 0; i < 10; ++i) {
    ++store_.arrived;
    Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1}));
}

TEST_F(SilentStoreTest, ItsReadsRunAgainWhenTheyAreTriedAgain) {
  Advance(StoreQueue::kSilentAfter);
  store_.pending[0].on_wait(true);
  EXPECT_EQ(queue_.parked(), 2U);
  store_.pending[0].on_wait(false);
  EXPECT_EQ(queue_.running(), 2U);
  EXPECT_EQ(queue_.parked(), 1U);
  Advance(StoreQueue::kSilentAfter - std::chrono::milliseconds(1));
  EXPECT_EQ(queue_.running(), 2U) << "counted from the new attempt on";
  store_.EndAll();
  EXPECT_EQ(queue_.running() + queue_.parked(), 0U);
}

TEST_F(SilentStoreTest, IsNoneWhereNothingElseWaits) {
  for (int i = 0; i < 6; ++i)
    store_.End(0);
  Advance(std::chrono::minutes(1));
  EXPECT_EQ(queue_.running(), 2U);
  EXPECT_EQ(queue_.parked(), 0U);
}

TEST_F(StoreQueueTest, StartsUrgentReadsFirst) {
  for (SampleId id = 0; id < 4; ++id)
    Add(id);
  Add(9, true);
  store_.End(0);
  EXPECT_EQ(Running(), (std::vector<SampleId>{1, 9}));
}

TEST_F(StoreQueueTest, AReadMayBecomeUrgentAndIsStillDoneOnce) {
  Add(0);
  Add(1);
  Add(2);
  const auto late = Add(3);
  queue_.MakeUrgent(late);
  store_.EndAll();
  EXPECT_EQ(ended_,
            (std::vector<std::pair<SampleId, bool>>{{0, true}, {1, true}, {3, true}, {2, true}}));
}

TEST_F(StoreQueueTest, CancelsOnlyWhatHasNotBegun) {
  const auto running = Add(0);
  Add(1);
  const auto waiting = Add(2);
  EXPECT_FALSE(queue_.Cancel(running));
  EXPECT_TRUE(queue_.Cancel(waiting));
  store_.EndAll();
  EXPECT_EQ(store_.reads.count(2), 0U);
}

TEST_F(StoreQueueTest, HandsErrorsOn) {
  Add(0);
  store_.End(0, Status(Code::kNotFound, "gone"));
  EXPECT_EQ(ended_, (std::vector<std::pair<SampleId, bool>>{{0, false}}));
}

// Samples 0 to 9 lie one after the other in an archive, with headers between.
class JoiningTest : public StoreQueueTest {
 protected:
  JoiningTest() {
    for (SampleId id = 0; id < 10; ++id)
      dataset_.places[id] = {.object = 0, .begin = id * 1000U, .end = id * 1000U + 10};
  }
  void Fill() {  // the places, with samples that lie far away
    dataset_.places[8].object = 1;
    dataset_.places[9].object = 2;
    Add(8);
    Add(9);
  }
};

TEST_F(JoiningTest, NeighboursThatWaitAreReadTogether) {
  Fill();
  for (const SampleId id : {3U, 5U, 2U, 4U})
    Add(id);
  EXPECT_TRUE(store_.runs.empty());
  store_.End(0);
  EXPECT_EQ(store_.runs, (std::vector<std::vector<SampleId>>{{2, 3, 4, 5}}));
  EXPECT_EQ(queue_.running(), 2U) << "together they are one";
  EXPECT_EQ(queue_.waiting(), 0U);
  store_.EndAll();
  EXPECT_EQ(ended_.size(), 6U);
  EXPECT_EQ(queue_.running(), 0U);
}

TEST_F(JoiningTest, NothingWaitsToBeJoined) {
  Add(0);
  Add(1);
  EXPECT_TRUE(store_.runs.empty());
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1}));
}

TEST_F(JoiningTest, SamplesOfOtherObjectsAreReadAlone) {
  Fill();
  dataset_.places.erase(4);
  dataset_.places[5].object = 7;
  for (const SampleId id : {3U, 4U, 5U})
    Add(id);
  store_.EndAll();
  EXPECT_TRUE(store_.runs.empty());
  EXPECT_EQ(ended_.size(), 5U);
}

TEST_F(JoiningTest, CancelledSamplesAreNotTakenAlong) {
  Fill();
  Add(3);
  const auto cancelled = Add(4);
  Add(5);
  EXPECT_TRUE(queue_.Cancel(cancelled));
  EXPECT_FALSE(queue_.Cancel(cancelled));
  store_.End(0);
  EXPECT_EQ(store_.runs, (std::vector<std::vector<SampleId>>{{3, 5}}));
}

TEST_F(JoiningTest, OneSampleAskedForTwiceIsReadTwice) {
  Fill();
  Add(3);
  Add(3);
  store_.EndAll();
  EXPECT_EQ(store_.reads[3], 2);
  EXPECT_TRUE(store_.runs.empty());
}

// Ranges may overlap (docs/formats/ranges.md), and one read fills each byte of its range once.
TEST_F(JoiningTest, SamplesThatOverlapAreReadApart) {
  dataset_.places[4] = {.object = 0, .begin = 3005, .end = 3015};
  dataset_.places[5] = dataset_.places[3];
  Fill();
  for (const SampleId id : {3U, 4U, 5U})
    Add(id);
  store_.EndAll();
  EXPECT_TRUE(store_.runs.empty());
  for (const SampleId id : {3U, 4U, 5U})
    EXPECT_EQ(store_.reads[id], 1) << id;
  EXPECT_EQ(ended_.size(), 5U);
}

// Whatever is added, made urgent, cancelled and ended in whatever order: each read that is not
// cancelled ends once, and what is read together lies together.
TEST(StoreQueueProperty, EachReadEndsOnce) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    constexpr SampleId kSamples = 60;
    FakeDataset dataset("shards", std::vector<ByteCount>(kSamples, 10));
    ByteCount at = 0;
    for (SampleId id = 0; id < kSamples; ++id) {
      at += random.Below(4) == 0 ? 100'000U : 1'000U;
      if (random.Below(10) != 0)
        dataset.places[id] = {.object = id / 20, .begin = at, .end = at + 10};
      at += 10;
    }
    FakeArena arena(1);
    SampleMemory memory(arena, 1 << 20, {});
    FakeStore store;
    ManualClock clock;
    Alarms alarms(clock);
    StoreQueue queue(store, alarms, 1 + random.Below(4));
    std::array<std::shared_ptr<ReadPace>, 3> paces = {nullptr, std::make_shared<ReadPace>(),
                                                      std::make_shared<ReadPace>()};
    std::map<StoreQueue::Ticket, int> expected;
    std::map<StoreQueue::Ticket, int> ended;
    std::vector<StoreQueue::Ticket> tickets;
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t choice = random.Below(10);
      store.arrived += random.Below(20);
      clock.Advance(std::chrono::milliseconds(random.Below(100)));
      alarms.RunDue();
      paces[1 + random.Below(2)]->OnAsked(random.Below(100), clock.Now());
      if (choice < 5) {
        const StoreQueue::Ticket next = tickets.size() + 1;
        const auto ticket =
            queue.Add({.dataset = &dataset,
                       .id = static_cast<SampleId>(random.Below(kSamples)),
                       .into = memory.AllocateAsked(10),
                       .done = [&ended, next](const Result<std::uint32_t>&) { ++ended[next]; },
                       .due = {.pace = paces[random.Below(3)], .place = random.Below(100)}},
                      random.Below(4) == 0);
        ASSERT_EQ(ticket, next);
        tickets.push_back(ticket);
        expected[ticket] = 1;
      } else if (choice < 6 && !tickets.empty()) {
        queue.MakeUrgent(tickets[random.Below(tickets.size())]);
      } else if (choice < 7 && !tickets.empty()) {
        const auto ticket = tickets[random.Below(tickets.size())];
        if (queue.Cancel(ticket)) expected[ticket] = 0;
      } else if (!store.pending.empty()) {
        store.End(random.Below(store.pending.size()));
      }
    }
    store.EndAll();
    EXPECT_EQ(queue.running(), 0U);
    EXPECT_EQ(queue.waiting(), 0U);
    for (const auto& [ticket, times] : expected)
      EXPECT_EQ(ended[ticket], times) << ticket;
    for (const auto& run : store.runs) {
      for (std::size_t i = 1; i < run.size(); ++i) {
        const StorePlace& before = dataset.places.at(run[i - 1]);
        const StorePlace& after = dataset.places.at(run[i]);
        EXPECT_EQ(before.object, after.object);
        EXPECT_GE(after.begin, before.end);
        EXPECT_LE(after.begin - before.end, JoinLimits{}.gap_max);
      }
    }
  }
}

}  // namespace
}  // namespace optcache::sidecar
