#include "sidecar/fetch/fetcher.h"

#include <algorithm>

#include "unit/sidecar/fetcher_fixture.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Answer;

TEST_F(FetcherTest, AsksForManySamplesInOneGet) {
  for (SampleId id = 0; id < 70; ++id)
    Start(id);
  fetcher_.Flush();
  const auto gets = node_.All<wire::Get>();
  ASSERT_EQ(gets.size(), 2U);
  EXPECT_EQ(gets[0].items.size(), 64U);
  EXPECT_EQ(gets[1].items.size(), 6U);
  EXPECT_EQ(gets[0].items[3], (wire::ReadItem{.pass = 1, .position = 3, .id = 3}));
}

TEST_F(FetcherTest, AGetIsOfOneStreamAndUrgentReadsGoFirst) {
  Start(0);
  Start(1, Urgency::kStaged, 6);
  Start(2, Urgency::kUrgent);
  fetcher_.Flush();
  const auto gets = node_.All<wire::Get>();
  ASSERT_EQ(gets.size(), 3U);
  EXPECT_EQ(gets[0].mode, wire::GetMode::kUrgent);
  EXPECT_EQ(gets[0].items[0].id, 2U);
  EXPECT_EQ(gets[1].stream, 5U);
  EXPECT_EQ(gets[2].stream, 6U);
}

TEST_F(FetcherTest, TakesTheBytesStraightIntoTheBuffer) {
  Start(3);
  fetcher_.Flush();
  AnswerBytes(0, Answer::kPeer, 3);
  EXPECT_EQ(Ended(3), Source::kPeer);
  EXPECT_TRUE(IsSample(3, buffers_[0]->bytes()));
  EXPECT_TRUE(store_.reads.empty());
}

TEST_F(FetcherTest, CountsByDatasetAndSource) {
  fetcher_.CountFor("images");
  fetcher_.CountFor("words");
  for (SampleId id = 1; id <= 3; ++id)
    Start(id);
  fetcher_.Flush();
  AnswerBytes(0, Answer::kHere, 1);
  AnswerBytes(1, Answer::kPeer, 2);
  Answer(2, Answer::kMissDrop);
  store_.End();
  std::map<std::string, double> counted;
  fetcher_.VisitCounters(
      [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
        if (name == "optcache_fetched_samples_total")
          counted[labels.at(0).second + " " + labels.at(1).second] = value;
      });
  EXPECT_EQ(counted, (std::map<std::string, double>{{"local images", 1},
                                                    {"peer images", 1},
                                                    {"store images", 1},
                                                    {"local words", 0},
                                                    {"peer words", 0},
                                                    {"store words", 0}}));
}

TEST_F(FetcherTest, ReadsAMissOnceAndPutsBackWhatThePlanKeeps) {
  Start(3);
  fetcher_.Flush();
  Answer(0, Answer::kMissKeep, 44);
  EXPECT_TRUE(store_.pending.at(0).keep);
  store_.End();
  EXPECT_EQ(Ended(3), Source::kStore);
  ASSERT_EQ(node_.puts.size(), 1U);
  const wire::Put& put = node_.puts[0].put;
  EXPECT_EQ(put.lease, 44U);
  EXPECT_EQ(put.item.id, 3U);
  EXPECT_EQ(put.crc, Crc32c(buffers_[0]->bytes()));
  EXPECT_EQ(node_.puts[0].payload, buffers_[0]);
}

TEST_F(FetcherTest, SaysWhenALeaseIsDoneWithoutAPut) {
  Start(3);
  fetcher_.Flush();
  Answer(0, Answer::kMissDrop, 44);
  EXPECT_FALSE(store_.pending.at(0).keep);
  store_.End();
  fetcher_.Flush();
  EXPECT_TRUE(node_.puts.empty());
  const auto updates = node_.All<wire::LeaseUpdate>();
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].event, wire::LeaseEvent::kDone);
}

TEST_F(FetcherTest, RenewsItsLeasesWhileItReads) {
  Start(3);
  fetcher_.Flush();
  Answer(0, Answer::kMissKeep, 44);
  Advance(seconds(2));
  Advance(seconds(2));
  const auto updates = node_.All<wire::LeaseUpdate>();
  ASSERT_EQ(updates.size(), 2U);
  EXPECT_EQ(updates[1].event, wire::LeaseEvent::kRenew);
}

TEST_F(FetcherTest, AFailedReadEndsTheLeaseAndTellsWhy) {
  Start(3);
  fetcher_.Flush();
  Answer(0, Answer::kMissKeep, 44);
  store_.End(0, Status(Code::kNotFound, "no such object"));
  fetcher_.Flush();
  ASSERT_EQ(ended_[3].size(), 1U);
  EXPECT_EQ(ended_[3][0].error().message(), "no such object");
  EXPECT_EQ(node_.All<wire::LeaseUpdate>().back().event, wire::LeaseEvent::kFailed);
}

TEST_F(FetcherTest, AsksAgainForWhatIsOnItsWay) {
  Start(3);
  fetcher_.Flush();
  Answer(0, Answer::kOnItsWay);
  Advance(milliseconds(19));
  EXPECT_EQ(node_.All<wire::Get>().size(), 1U);
  Advance(milliseconds(1));
  EXPECT_EQ(node_.All<wire::Get>().size(), 2U);
  AnswerBytes(0, Answer::kHere, 3);
  EXPECT_EQ(Ended(3), Source::kNode);
}

TEST_F(FetcherTest, AsksAtOnceAndUrgentlyWhenATrainerBeginsToWait) {
  const FetchId fetch = Start(3);
  fetcher_.Flush();
  Answer(0, Answer::kOnItsWay);
  fetcher_.MakeUrgent(fetch);
  fetcher_.Flush();
  ASSERT_EQ(node_.All<wire::Get>().size(), 2U);
  EXPECT_EQ(node_.All<wire::Get>()[1].mode, wire::GetMode::kUrgent);
}

TEST_F(FetcherTest, WhatNeverComesIsReadFromTheStore) {
  Start(3);
  fetcher_.Flush();
  for (int i = 0; i < 600 && store_.pending.empty(); ++i) {
    Answer(0, Answer::kOnItsWay);
    Advance(milliseconds(20));
  }
  EXPECT_EQ(store_.reads[3], 1);
}

TEST_F(FetcherTest, AWaitingTrainersReadIsAskedForAgainUrgentlyAndThenReadFromTheStore) {
  Start(3, Urgency::kUrgent);
  fetcher_.Flush();
  for (int i = 0; i < 600 && store_.pending.empty(); ++i) {
    Answer(0, Answer::kOnItsWay);
    Advance(milliseconds(20));
  }
  EXPECT_EQ(store_.reads[3], 1);
  const auto asked = node_.All<wire::Get>();  // every 20 ms for 10 s
  EXPECT_GT(std::ranges::count(asked, wire::GetMode::kUrgent, &wire::Get::mode), 400);
}

TEST_F(FetcherTest, WithoutANodeTheStoreIsReadAtOnce) {
  node_.up = false;
  Start(3);
  store_.End();
  EXPECT_EQ(Ended(3), Source::kStore);
  EXPECT_TRUE(node_.sent.empty());
}

TEST_F(FetcherTest, WhatALostNodeOwedIsReadFromTheStore) {
  Start(1);
  fetcher_.Flush();
  Answer(0, Answer::kOnItsWay);
  Start(2);
  fetcher_.Flush();
  Start(3);
  LoseNode();
  store_.EndAll();
  for (const SampleId id : {1U, 2U, 3U})
    EXPECT_EQ(Ended(id), Source::kStore);
}

TEST_F(FetcherTest, AnAnswerOfALostConnectionMeansNothing) {
  Start(3);
  fetcher_.Flush();
  const std::uint32_t request = LastRequest();
  LoseNode();
  node_.up = true;
  EXPECT_EQ(fetcher_.OnPayloadStart(request, {.answer = Answer::kHere}, kSize), nullptr);
  fetcher_.OnPayload(request, {.answer = Answer::kHere}, Status(Code::kCancelled, "unwanted"));
  store_.End();
  EXPECT_EQ(Ended(3), Source::kStore);
}

TEST_F(FetcherTest, DamagedBytesAreReadFromTheStore) {
  Start(3);
  fetcher_.Flush();
  AnswerBytes(0, Answer::kHere, 4, Status(Code::kDataLoss, "CRC"));
  store_.End();
  EXPECT_EQ(Ended(3), Source::kStore);
  EXPECT_TRUE(IsSample(3, buffers_[0]->bytes()));
}

TEST_F(FetcherTest, BytesOfAnotherLengthAreRefused) {
  Start(3);
  fetcher_.Flush();
  const wire::SampleReply reply{.answer = Answer::kHere};
  EXPECT_EQ(fetcher_.OnPayloadStart(LastRequest(), reply, kSize + 1), nullptr);
  fetcher_.OnPayload(LastRequest(), reply, Status(Code::kCancelled, "unwanted"));
  EXPECT_EQ(store_.reads[3], 1);
}

TEST_F(FetcherTest, DoesNotWaitForAnAnswerThatStaysOut) {
  Start(1);
  Start(2);
  fetcher_.Flush();
  clock_.Advance(seconds(1));
  AnswerBytes(0, Answer::kHere, 1);
  Advance(seconds(2));
  EXPECT_EQ(store_.reads[2], 1);
  EXPECT_TRUE(node_.dropped.empty()) << "the node had answered something";
}

TEST_F(FetcherTest, ALateMissLendsItsLeaseToTheReadThatHasBegun) {
  Start(1);
  Start(2);
  fetcher_.Flush();
  clock_.Advance(seconds(1));
  AnswerBytes(0, Answer::kHere, 1);
  Advance(seconds(2));
  Answer(1, Answer::kMissKeep, 44);
  store_.End();
  EXPECT_EQ(store_.reads[2], 1);
  ASSERT_EQ(node_.puts.size(), 1U);
  EXPECT_EQ(node_.puts[0].put.lease, 44U);
}

TEST_F(FetcherTest, DropsANodeThatSaysNothingAtAll) {
  Start(1);
  fetcher_.Flush();
  Advance(seconds(3));
  EXPECT_EQ(node_.dropped.size(), 1U);
  EXPECT_EQ(store_.reads[1], 1);
}

TEST_F(FetcherTest, DropsANodeThatStopsInTheMiddleOfASample) {
  Start(1);
  fetcher_.Flush();
  clock_.Advance(seconds(1));
  ASSERT_NE(fetcher_.OnPayloadStart(LastRequest(), {.answer = Answer::kHere}, kSize), nullptr);
  Advance(seconds(2));
  EXPECT_TRUE(node_.dropped.empty()) << "it had begun to answer";
  Advance(seconds(3));
  EXPECT_EQ(node_.dropped.size(), 1U);
  LoseNode();
  store_.End();
  EXPECT_EQ(Ended(1), Source::kStore);
}

TEST_F(FetcherTest, ASampleThatIsStillComingIsNotLate) {
  Start(1);
  fetcher_.Flush();
  const wire::SampleReply reply{.answer = Answer::kHere};
  ASSERT_NE(fetcher_.OnPayloadStart(LastRequest(), reply, kSize), nullptr);
  for (int second = 0; second < 10; ++second) {
    node_.passed.received += 100'000'000;
    Advance(seconds(1));
  }
  EXPECT_TRUE(node_.dropped.empty());
  EXPECT_TRUE(store_.reads.empty());
  fetcher_.OnPayload(LastRequest(), reply, OkStatus());
  EXPECT_EQ(Ended(1), Source::kNode);
}

// What comes after it on the connection is late, and the node is not silent.
TEST_F(FetcherTest, BehindASampleThatIsStillComingOthersAreReadFromTheStore) {
  Start(1);
  fetcher_.Flush();
  ASSERT_NE(fetcher_.OnPayloadStart(LastRequest(), {.answer = Answer::kHere}, kSize), nullptr);
  Start(2, Urgency::kUrgent);
  fetcher_.Flush();
  for (int second = 0; second < 5; ++second) {
    node_.passed.received += 100'000'000;
    Advance(seconds(1));
  }
  EXPECT_EQ(store_.reads, (std::map<SampleId, int>{{2, 1}}));
  EXPECT_TRUE(node_.dropped.empty());
}

TEST_F(FetcherTest, WhatIsAbandonedBeforeItBeganCostsNothing) {
  fetcher_.Abandon(Start(1));
  fetcher_.Flush();
  EXPECT_TRUE(node_.sent.empty());
  EXPECT_EQ(fetcher_.fetching(), 0U);
}

TEST_F(FetcherTest, AnAbandonedMissGivesItsLeaseUp) {
  const FetchId fetch = Start(1);
  fetcher_.Flush();
  fetcher_.Abandon(fetch);
  Answer(0, Answer::kMissKeep, 44);
  fetcher_.Flush();
  EXPECT_TRUE(store_.reads.empty());
  EXPECT_EQ(node_.All<wire::LeaseUpdate>().at(0).event, wire::LeaseEvent::kFailed);
}

TEST_F(FetcherTest, AnAbandonedStoreReadIsFinishedAndPutBack) {
  const FetchId fetch = Start(1);
  fetcher_.Flush();
  Answer(0, Answer::kMissKeep, 44);
  fetcher_.Abandon(fetch);
  store_.End();
  EXPECT_EQ(node_.puts.size(), 1U);
  EXPECT_TRUE(ended_[1].empty());
}

}  // namespace
}  // namespace optcache::sidecar
