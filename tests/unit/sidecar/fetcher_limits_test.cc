// How much is asked for, read and put at a time.

#include "sidecar/fetch/fetcher.h"
#include "unit/sidecar/fetcher_fixture.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Answer;

TEST_F(FetcherTest, BoundsTheSamplesOfUnansweredGets) {
  FetchOptions options;
  options.items_in_flight = 128;
  Fetcher fetcher(node_, store_, alarms_, options, [] {});
  for (SampleId id = 0; id < 64 * 6; ++id) {
    fetcher.Start({.dataset = &dataset_,
                   .item = {.id = id},
                   .urgency = Urgency::kUrgent,
                   .buffer = memory_.AllocateAsked(kSize)},
                  [](const Result<Source>&) {});
  }
  fetcher.Flush();
  EXPECT_EQ(node_.All<wire::Get>().size(), 2U);
}

TEST_F(FetcherTest, BoundsTheUnansweredStagingGets) {
  for (SampleId id = 0; id < 64 * 6; ++id)
    Start(id);
  fetcher_.Flush();
  EXPECT_EQ(node_.All<wire::Get>().size(), 4U);
  for (std::uint32_t i = 0; i < 64; ++i)
    Answer(i, Answer::kMissDrop);
  fetcher_.Flush();
  EXPECT_EQ(node_.All<wire::Get>().size(), 5U);
}

TEST_F(FetcherTest, IsBehindWhileStagingGetsKeepSamplesWaiting) {
  for (SampleId id = 0; id < 64 * 4; ++id)
    Start(id);
  fetcher_.Flush();
  EXPECT_FALSE(fetcher_.IsBehind());
  const FetchId late = Start(300);
  fetcher_.Flush();
  EXPECT_TRUE(fetcher_.IsBehind());
  fetcher_.MakeUrgent(late);
  fetcher_.Flush();
  EXPECT_FALSE(fetcher_.IsBehind()) << "it is asked for";
}

// Room for two samples and a half, one in a Get.
class NarrowFetcherTest : public FetcherTest {
 protected:
  NarrowFetcherTest()
      : FetcherTest({.bytes_per_get = kSize,
                     .gets_in_flight = 100,
                     .bytes_in_flight = kSize * 5 / 2,
                     .puts = {.staged_bytes = kSize * 5 / 2, .queued_bytes = kSize * 5}}) {
    node_.on_put = [this] { node_.passed.queued += kSize; };
  }
  // Misses that the node keeps, all asked for and answered.
  void Miss(SampleId begin, SampleId end) {
    for (SampleId id = begin; id < end; ++id) {
      Start(id);
      fetcher_.Flush();
      Answer(0, Answer::kMissKeep, 40 + id);
    }
  }
};

TEST_F(NarrowFetcherTest, BoundsTheBytesOfUnansweredGetsTheLargestAside) {
  for (SampleId id = 0; id < 10; ++id)
    Start(id, Urgency::kUrgent);
  fetcher_.Flush();
  EXPECT_EQ(node_.All<wire::Get>().size(), 3U);
  Answer(0, Answer::kMissDrop);
  fetcher_.Flush();
  EXPECT_EQ(node_.All<wire::Get>().size(), 4U);
  Advance(seconds(5));  // the others are late, and no longer counted
  EXPECT_EQ(node_.All<wire::Get>().size(), 7U);
}

// Of large samples few are asked for at a time, in fewer Gets than there may be.
TEST_F(NarrowFetcherTest, IsBehindWhileBytesInFlightKeepSamplesWaiting) {
  for (const Urgency urgency : {Urgency::kStaged, Urgency::kUrgent}) {
    for (SampleId id = 0; id < 3; ++id)
      Start(id, urgency);
    fetcher_.Flush();
    EXPECT_FALSE(fetcher_.IsBehind());
    const FetchId late = Start(3, urgency);
    fetcher_.Flush();
    EXPECT_TRUE(fetcher_.IsBehind());
    fetcher_.Abandon(late);
    EXPECT_FALSE(fetcher_.IsBehind());
    LoseNode();
    store_.EndAll();
    node_.up = true;
  }
}

TEST_F(NarrowFetcherTest, WhileMuchWaitsToBePutNothingIsStaged) {
  Miss(0, 3);
  EXPECT_EQ(store_.pending.size(), 2U);
  Start(9);
  fetcher_.Flush();
  EXPECT_EQ(node_.All<wire::Get>().size(), 3U);  // it is not asked for
  store_.End();
  Advance(milliseconds(10));
  EXPECT_EQ(node_.puts.size(), 1U);
  EXPECT_EQ(store_.pending.size(), 1U);  // what was read waits to be sent
  node_.passed.queued = 0;
  Advance(milliseconds(10));
  EXPECT_EQ(store_.pending.size(), 2U);
  EXPECT_EQ(node_.All<wire::Get>().size(), 4U);
  store_.EndAll();
  EXPECT_EQ(node_.puts.size(), 3U);
}

TEST_F(NarrowFetcherTest, WhatATrainerWaitsForIsReadWhateverWaitsToBePut) {
  Miss(0, 2);
  const FetchId third = Start(2);
  fetcher_.Flush();
  Answer(0, Answer::kMissKeep, 42);
  EXPECT_EQ(store_.reads.count(2), 0U);
  fetcher_.MakeUrgent(third);
  EXPECT_EQ(store_.reads[2], 1);
}

TEST_F(NarrowFetcherTest, WhatIsHeldAndAbandonedGivesItsLeaseUp) {
  Miss(0, 2);
  const FetchId third = Start(2);
  fetcher_.Flush();
  Answer(0, Answer::kMissKeep, 42);
  fetcher_.Abandon(third);
  store_.EndAll();
  fetcher_.Flush();
  EXPECT_EQ(store_.reads.count(2), 0U);
  EXPECT_EQ(node_.All<wire::LeaseUpdate>().back().leases.front().second, 42U);
}

TEST_F(NarrowFetcherTest, WhatIsHeldIsReadWhenTheNodeIsLost) {
  Miss(0, 4);
  LoseNode();
  store_.EndAll();
  for (SampleId id = 0; id < 4; ++id)
    EXPECT_EQ(Ended(id), Source::kStore);
}

TEST_F(NarrowFetcherTest, WhatCannotBePutEndsItsLease) {
  Start(1, Urgency::kUrgent);
  fetcher_.Flush();
  Answer(0, Answer::kMissKeep, 44);
  node_.passed.queued = kSize * 5 + 1;
  store_.End();
  fetcher_.Flush();
  EXPECT_EQ(Ended(1), Source::kStore);
  EXPECT_TRUE(node_.puts.empty());
  ASSERT_EQ(node_.All<wire::LeaseUpdate>().size(), 1U);
  EXPECT_EQ(node_.All<wire::LeaseUpdate>()[0].event, wire::LeaseEvent::kDone);
}

}  // namespace
}  // namespace optcache::sidecar
