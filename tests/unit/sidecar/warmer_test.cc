#include "sidecar/programs/warmer.h"

#include <numeric>
#include <set>

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Answer;

constexpr ByteCount kWarmSize = 100;

class WarmerTest : public testing::Test {
 protected:
  void Start(SampleId samples, WarmOptions options = {}) {
    std::vector<SampleId> ids(samples);
    std::iota(ids.begin(), ids.end(), 0);
    warmer_.emplace(dataset_, ids, node_, store_, alarms_, options, [this] { ++ends_; });
    warmer_->Start();
    alarms_.RunDue();
  }
  const FakeNode::Sent& LastGet() const {
    for (auto it = node_.sent.rbegin(); it != node_.sent.rend(); ++it) {
      if (std::holds_alternative<wire::Get>(it->message)) return *it;
    }
    return node_.sent.at(0);
  }
  void Answer(std::uint32_t index, Answer answer, wire::LeaseId lease = 0) {
    warmer_->OnAnswer(LastGet().request,
                      {.index = index, .answer = answer, .lease = lease, .wait_ms = 20});
    alarms_.RunDue();
  }
  void AnswerHeld(std::uint32_t index) {
    const wire::SampleReply reply{.index = index, .answer = Answer::kHere};
    EXPECT_EQ(warmer_->OnPayloadStart(LastGet().request, reply, kWarmSize), nullptr);
    warmer_->OnPayload(LastGet().request, reply, Status(Code::kCancelled, "thrown away"));
    alarms_.RunDue();
  }
  void Stored(SampleId id, bool accepted = true) {
    warmer_->OnStored({.dataset = dataset_.key(), .id = id, .accepted = accepted});
    alarms_.RunDue();
  }
  void EndRead(const Status& status = {}) {
    store_.End(0, status);
    alarms_.RunDue();
  }
  void Advance(Duration by) {
    clock_.Advance(by);
    alarms_.RunDue();
  }
  void AdvanceSeconds(int count) {
    for (int i = 0; i < count; ++i)
      Advance(seconds(1));
  }
  void Lose() {
    node_.up = false;
    warmer_->OnNodeLost();
  }
  void Return() {
    node_.up = true;
    warmer_->OnNodeUp();
    alarms_.RunDue();
  }

  ManualClock clock_;
  Alarms alarms_{clock_};
  FakeDataset dataset_{"images", std::vector<ByteCount>(500, kWarmSize)};
  FakeNode node_;
  FakeStore store_;
  int ends_ = 0;
  std::optional<Warmer> warmer_;
};

TEST_F(WarmerTest, ASampleThatTakesLongOnItsWayIsNotTakenForSilence) {
  Start(1);
  Answer(0, Answer::kMissKeep, 44);
  EndRead();
  for (ByteCount second = 0; second < 30; ++second) {
    node_.passed.queued = 1'000'000'000 - second;
    AdvanceSeconds(1);
  }
  EXPECT_TRUE(node_.dropped.empty());
  AdvanceSeconds(10);
  EXPECT_EQ(node_.dropped.size(), 1U);
}

TEST_F(WarmerTest, ReadsWhatNoNodeHasAndPutsItIntoTheNode) {
  Start(2);
  const auto gets = node_.All<wire::Get>();
  ASSERT_EQ(gets.size(), 1U);
  EXPECT_EQ(gets[0].stream, 0U);
  EXPECT_EQ(gets[0].mode, wire::GetMode::kStage);
  ASSERT_EQ(gets[0].items.size(), 2U);
  Answer(0, Answer::kMissKeep, 44);
  EXPECT_TRUE(store_.pending.at(0).keep);
  AnswerHeld(1);
  EXPECT_FALSE(warmer_->result());
  EndRead();
  ASSERT_EQ(node_.puts.size(), 1U);
  const wire::Put& put = node_.puts[0].put;
  EXPECT_EQ(put.item.id, 0U);
  EXPECT_EQ(put.lease, 44U);
  EXPECT_EQ(put.stream, 0U);
  EXPECT_EQ(put.crc, Crc32c(node_.puts[0].payload->bytes()));
  EXPECT_TRUE(IsSample(0, node_.puts[0].payload->bytes()));
  EXPECT_EQ(ends_, 0);
  Stored(0);
  ASSERT_TRUE(warmer_->result());
  EXPECT_TRUE(warmer_->result()->ok());
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(
      warmer_->counts(),
      (WarmCounts{
          .samples = 2, .bytes = 200, .held = 1, .held_bytes = 100, .read = 1, .read_bytes = 100}));
}

TEST_F(WarmerTest, WhatIsHeldIsNotRead) {
  Start(70);
  EXPECT_EQ(node_.All<wire::Get>().size(), 2U);
  const std::uint32_t second = LastGet().request;
  for (const std::uint32_t request : {second - 1, second}) {
    for (std::uint32_t i = 0; i < (request == second ? 6U : 64U); ++i) {
      warmer_->OnPayload(request, {.index = i, .answer = Answer::kPeer}, OkStatus());
      alarms_.RunDue();
    }
  }
  EXPECT_TRUE(store_.reads.empty());
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(warmer_->counts().held, 70U);
}

TEST_F(WarmerTest, WhatTheNodeWouldNotKeepIsNotRead) {
  Start(2);
  Answer(0, Answer::kMissDrop, 44);
  AnswerHeld(1);
  EXPECT_TRUE(store_.reads.empty());
  const auto updates = node_.All<wire::LeaseUpdate>();
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].event, wire::LeaseEvent::kFailed);
  EXPECT_TRUE(warmer_->result()->ok());
  EXPECT_EQ(warmer_->counts().no_room, 1U);
}

// It may not be among the dataset's nodes any more. A pod that fails would be tried again there.
TEST_F(WarmerTest, ANodeThatKeepsNothingIsNoError) {
  Start(2);
  EXPECT_FALSE(WarmCounts().kept_nothing());
  Answer(0, Answer::kMissDrop, 44);
  Answer(1, Answer::kMissKeep, 45);
  EndRead();
  Stored(1, false);
  ASSERT_TRUE(warmer_->result());
  EXPECT_TRUE(warmer_->result()->ok());
  EXPECT_EQ(warmer_->counts().no_room, 2U);
  EXPECT_TRUE(warmer_->counts().kept_nothing());
}

TEST_F(WarmerTest, WhatAnotherReadsIsAskedForAgain) {
  Start(1);
  Answer(0, Answer::kOnItsWay);
  EXPECT_EQ(node_.All<wire::Get>().size(), 1U);
  Advance(milliseconds(20));
  EXPECT_EQ(node_.All<wire::Get>().size(), 2U);
  AnswerHeld(0);
  EXPECT_EQ(ends_, 1);
}

TEST_F(WarmerTest, ADatasetThatTheNodeDoesNotKnowYetIsWaitedFor) {
  Start(1);
  for (int i = 0; i < 10; ++i) {
    Answer(0, Answer::kMissDrop);  // without a lease: nobody can say
    Advance(milliseconds(500));
  }
  EXPECT_TRUE(store_.reads.empty());
  Answer(0, Answer::kMissKeep, 7);
  EndRead();
  Stored(0);
  EXPECT_TRUE(warmer_->result()->ok());
}

TEST_F(WarmerTest, ADatasetThatTheNodeNeverKnowsIsAnError) {
  Start(1);
  for (int i = 0; i < 130 && !warmer_->result(); ++i) {
    Answer(0, Answer::kMissDrop);
    AdvanceSeconds(1);
  }
  ASSERT_TRUE(warmer_->result());
  EXPECT_EQ(warmer_->result()->message(),
            "warming images stands still: this machine's node does not serve it, or not to this "
            "namespace");
  EXPECT_EQ(ends_, 1);
}

TEST_F(WarmerTest, ANodeThatIsGoneIsWaitedForAndNothingIsReadTwice) {
  Start(3);
  Answer(0, Answer::kMissKeep, 1);
  Answer(1, Answer::kMissKeep, 2);
  EndRead();  // 0 is put, and the node goes before it answers
  Lose();
  EndRead();  // 1 has come while it was away
  EXPECT_EQ(node_.puts.size(), 1U);
  Return();
  ASSERT_EQ(node_.puts.size(), 2U);
  EXPECT_EQ(node_.puts[1].put.item.id, 1U);
  EXPECT_EQ(node_.puts[1].put.lease, 0U);
  const auto get = std::get<wire::Get>(LastGet().message);
  ASSERT_EQ(get.items.size(), 2U);
  EXPECT_EQ(std::set<SampleId>({get.items[0].id, get.items[1].id}), (std::set<SampleId>{0, 2}));
  AnswerHeld(0);
  AnswerHeld(1);
  Stored(1);
  EXPECT_TRUE(warmer_->result()->ok());
  EXPECT_EQ(store_.reads, (std::map<SampleId, int>{{0, 1}, {1, 1}}));
}

TEST_F(WarmerTest, ANodeThatStaysAwayIsAnError) {
  node_.up = false;
  Start(1);
  AdvanceSeconds(121);
  ASSERT_TRUE(warmer_->result());
  EXPECT_EQ(warmer_->result()->message(),
            "warming images stands still: this machine's node cannot be reached");
  EXPECT_TRUE(store_.reads.empty());
}

TEST_F(WarmerTest, ANodeThatDoesNotAnswerIsLeft) {
  Start(1);
  AdvanceSeconds(11);
  ASSERT_FALSE(node_.dropped.empty());
  EXPECT_EQ(node_.dropped[0].code(), Code::kDeadlineExceeded);
}

TEST_F(WarmerTest, AStoreThatIsSlowIsNoStall) {
  Start(1);
  Answer(0, Answer::kMissKeep, 1);
  AdvanceSeconds(300);
  EXPECT_FALSE(warmer_->result());
  EXPECT_GT(node_.All<wire::LeaseUpdate>().size(), 100U);
}

TEST_F(WarmerTest, HasNoMoreInFlightThanItsMemory) {
  Start(100, {.memory = 10 * kWarmSize});
  ASSERT_EQ(node_.All<wire::Get>().size(), 1U);
  EXPECT_EQ(node_.All<wire::Get>()[0].items.size(), 10U);
  Answer(0, Answer::kMissKeep, 1);
  EXPECT_EQ(node_.All<wire::Get>().size(), 1U);
  AnswerHeld(1);
  ASSERT_EQ(node_.All<wire::Get>().size(), 2U);
  EXPECT_EQ(node_.All<wire::Get>()[1].items.size(), 1U);
}

TEST_F(WarmerTest, ASampleThatCannotBeReadIsNamedAtTheEnd) {
  Start(3);
  for (std::uint32_t i = 0; i < 3; ++i)
    Answer(i, Answer::kMissKeep, i + 1);
  EndRead({Code::kNotFound, "a.jpg is gone"});
  EndRead();
  EndRead();
  Stored(1);
  Stored(2);
  ASSERT_TRUE(warmer_->result());
  EXPECT_TRUE(warmer_->result()->ok());
  EXPECT_EQ(warmer_->first_failure().message(), "a.jpg is gone");
  EXPECT_EQ(warmer_->counts().failed, 1U);
  EXPECT_EQ(warmer_->counts().read, 2U);
}

TEST_F(WarmerTest, TooManyThatCannotBeReadAreAFailure) {
  Start(3);
  for (std::uint32_t i = 0; i < 3; ++i)
    Answer(i, Answer::kMissKeep, i + 1);
  EndRead({Code::kNotFound, "a.jpg is gone"});
  EndRead({Code::kNotFound, "b.jpg is gone"});
  EndRead();
  Stored(2);
  ASSERT_TRUE(warmer_->result());
  EXPECT_EQ(warmer_->result()->message(),
            "2 of 3 samples of images could not be read, first: a.jpg is gone");
}

TEST_F(WarmerTest, OneThatCouldReadNothingHasFailed) {
  Start(1);
  Answer(0, Answer::kMissKeep, 1);
  EndRead({Code::kNotFound, "a.jpg is gone"});
  ASSERT_TRUE(warmer_->result());
  EXPECT_EQ(warmer_->result()->code(), Code::kNotFound);
}

TEST(WarmCounts, AHundredthMayFail) {
  EXPECT_EQ(WarmCounts{.samples = 3}.tolerated(), 1U);
  EXPECT_EQ(WarmCounts{.samples = 199}.tolerated(), 1U);
  EXPECT_EQ(WarmCounts{.samples = 1'000'000}.tolerated(), 10'000U);
}

// A folder that was deleted; the rest is there.
TEST_F(WarmerTest, SamplesThatAreMissingSideBySideDoNotEndIt) {
  Start(400, {.failures_max = 3});
  for (std::uint32_t i = 0; i < 7; ++i)
    Answer(i, Answer::kMissKeep, i + 1);
  EndRead();
  for (int i = 0; i < 4; ++i)
    EndRead({Code::kNotFound, "a.jpg is gone"});
  EXPECT_EQ(ends_, 0) << "four of 400 are a hundredth";
  EndRead({Code::kNotFound, "a.jpg is gone"});
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(warmer_->result()->message(),
            "5 of 400 samples of images could not be read, first: a.jpg is gone");
}

// A bucket that is gone says of each object that it is not there.
TEST_F(WarmerTest, WhereNothingWasReadYetFewMissingAreEnough) {
  Start(400, {.failures_max = 3});
  for (std::uint32_t i = 0; i < 3; ++i)
    Answer(i, Answer::kMissKeep, i + 1);
  for (int i = 0; i < 3; ++i)
    EndRead({Code::kNotFound, "no such bucket"});
  EXPECT_EQ(ends_, 1);
}

TEST_F(WarmerTest, WhatEndsItIsTold) {
  Start(400, {.failures_max = 2});
  for (std::uint32_t i = 0; i < 5; ++i)
    Answer(i, Answer::kMissKeep, i + 1);
  EndRead();
  EndRead({Code::kNotFound, "a.jpg is gone"});
  EndRead({Code::kUnavailable, "no route"});
  EXPECT_EQ(ends_, 0) << "one refusal, beside a sample that is missing";
  EndRead({Code::kPermissionDenied, "the keys have expired"});
  ASSERT_EQ(ends_, 1);
  EXPECT_EQ(warmer_->result()->message(),
            "3 of 400 samples of images could not be read, last: the keys have expired");
}

TEST_F(WarmerTest, AStoreThatIsGoneEndsItSoon) {
  Start(64, {.failures_max = 3});
  for (std::uint32_t i = 0; i < 64; ++i)
    Answer(i, Answer::kMissKeep, i + 1);
  EndRead({Code::kUnavailable, "no route"});
  EndRead({Code::kUnavailable, "no route"});
  EXPECT_EQ(ends_, 0);
  EndRead({Code::kUnavailable, "no route"});
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(warmer_->result()->code(), Code::kUnavailable);
  const auto begun = store_.reads.size();
  store_.EndAll();
  EXPECT_EQ(store_.reads.size(), begun) << "what waits never begins";
}

TEST_F(WarmerTest, NothingToWarmIsDoneAtOnce) {
  Start(0);
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(warmer_->result()->ok());
}

}  // namespace
}  // namespace optcache::sidecar
