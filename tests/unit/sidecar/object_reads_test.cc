#include "sidecar/s3/object_reads.h"

#include "sidecar/client_router.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

// A core of its own: World's has other clients.
class ObjectReadsTest : public testing::Test {
 protected:
  ObjectReadsTest() {
    node_.up = false;
    feeder_.emplace(
        FeederPorts{
            .arena = arena_, .node = node_, .store = store_, .orders = orders_, .clients = router_},
        alarms_, FeederOptions{.overflow_bytes = 2000});
    order_.emplace(feeder_->readers(), kObjectClients);
    reads_.Open(*feeder_, *order_);
  }
  ~ObjectReadsTest() override {
    reads_.Close();
    answers_.clear();
    store_.pending.clear();
    feeder_.reset();
    EXPECT_EQ(arena_.slots(), 0U);
  }
  ObjectReadsTest(const ObjectReadsTest&) = delete;
  ObjectReadsTest& operator=(const ObjectReadsTest&) = delete;

  void Read(SampleId id, const ByteRange& part) { ReadOf(dataset_, id, part); }
  void ReadOf(const FakeDataset& dataset, SampleId id, const ByteRange& part) {
    reads_.Read(dataset, id, part,
                [this](Result<BufferRef> buffer) { answers_.push_back(std::move(buffer)); });
    alarms_.RunDue();
  }
  void RunStore() {
    orders_.AnswerAll();
    alarms_.RunDue();
    while (!store_.pending.empty()) {
      store_.EndAll();
      alarms_.RunDue();
    }
  }
  void Advance(Duration by) {
    clock_.Advance(by);
    alarms_.RunDue();
  }

  ManualClock clock_;
  FakeDataset dataset_{"images", std::vector<ByteCount>(100, 100)};
  FakeDataset large_{"large", {10'000, 10'000, 10'000, 10'000, 50'000}};
  FakeArena arena_{100'000};
  Alarms alarms_{clock_};
  FakeNode node_;
  FakeStore store_;
  FakeOrders orders_;
  FakeClients processes_;
  ObjectReads reads_{alarms_};
  ClientRouter router_{processes_, reads_};
  std::optional<Feeder> feeder_;
  std::optional<KeyOrder> order_;
  std::vector<Result<BufferRef>> answers_;
};

TEST_F(ObjectReadsTest, ReadTheWholeSample) {
  Read(3, {.first = 0, .length = 100});
  RunStore();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(IsSample(3, (*answers_[0])->bytes()));
  EXPECT_EQ(reads_.reads(), 0U);
}

TEST_F(ObjectReadsTest, KeepTheBytesAsLongAsTheyAreUsed) {
  Read(3, {.first = 0, .length = 100});
  RunStore();
  EXPECT_EQ(arena_.slots(), 1U);
  answers_.clear();
  EXPECT_EQ(arena_.slots(), 0U);
}

TEST_F(ObjectReadsTest, AreOneForTheRangesOfASample) {
  Read(3, {.first = 0, .length = 40});
  Read(3, {.first = 40, .length = 40});
  RunStore();
  Read(3, {.first = 80, .length = 20});
  EXPECT_EQ(answers_.size(), 3U);
  EXPECT_EQ(store_.reads[3], 1);
  EXPECT_EQ(reads_.joined(), 2U);
  EXPECT_EQ(reads_.reads(), 0U) << "all of it has been asked for";
}

TEST_F(ObjectReadsTest, BeginAnewAfterTheWholeSample) {
  for (int pass = 1; pass <= 2; ++pass) {
    Read(3, {.first = 0, .length = 50});
    Read(3, {.first = 50, .length = 50});
    RunStore();
    EXPECT_EQ(store_.reads[3], pass);
  }
  Read(3, {.first = 0, .length = 100});
  Read(3, {.first = 0, .length = 100});
  RunStore();
  EXPECT_EQ(store_.reads[3], 4) << "whole objects are reads of their own";
}

TEST_F(ObjectReadsTest, EndWhenNobodyAsksForMore) {
  Read(3, {.first = 0, .length = 10});
  RunStore();
  answers_.clear();
  Advance(ObjectReads::kLinger / 2);
  Read(3, {.first = 10, .length = 10});
  Advance(ObjectReads::kLinger / 2);
  EXPECT_EQ(reads_.reads(), 1U) << "from the last range on";
  answers_.clear();
  Advance(ObjectReads::kLinger);
  EXPECT_EQ(reads_.reads(), 0U);
  EXPECT_EQ(arena_.slots(), 0U);
}

TEST_F(ObjectReadsTest, AreOneForRangesWithMinutesBetweenThem) {
  for (ByteCount first = 0; first < 50; first += 10) {
    Read(3, {.first = first, .length = 10});
    RunStore();
    answers_.clear();
    Advance(std::chrono::minutes(14));
  }
  EXPECT_EQ(store_.reads[3], 1);
}

TEST_F(ObjectReadsTest, AreOneForAllRangesThoughSomeAreAskedForTwice) {
  for (const ByteCount first : {90U, 90U, 0U, 50U, 10U}) {
    Read(3, {.first = first, .length = first == 10 ? 40U : first == 50 ? 40U : 10U});
    RunStore();
    EXPECT_EQ(store_.reads[3], 1) << first;
  }
  EXPECT_EQ(reads_.reads(), 0U) << "all of it has been asked for";
}

TEST_F(ObjectReadsTest, KeepTheSamplesWhosePartsWereAskedForLast) {
  const auto read = [this](SampleId id, ByteCount first) {
    ReadOf(large_, id, {.first = first, .length = 10});
    RunStore();
    answers_.clear();
  };
  read(0, 0);
  read(1, 0);
  read(0, 10);
  read(2, 0);  // a quarter of the memory is two of them
  read(0, 20);
  EXPECT_EQ(store_.reads[0], 1);
  read(1, 10);
  EXPECT_EQ(store_.reads[1], 2);
}

// Too large for the arena, and for the overflow beside another one.
TEST_F(ObjectReadsTest, GiveWayToARequestThatWouldWait) {
  const FakeDataset huge{"huge", {200'000, 200'000}};
  ReadOf(huge, 0, {.first = 0, .length = 10});
  RunStore();
  answers_.clear();
  EXPECT_EQ(reads_.reads(), 1U) << "it stays open";
  ReadOf(huge, 1, {.first = 0, .length = 10});
  RunStore();
  EXPECT_EQ(answers_.size(), 1U) << "at once, without a wait";
  EXPECT_EQ(reads_.reads(), 1U);
  answers_.clear();
  Advance(ObjectReads::kLinger);
}

TEST_F(ObjectReadsTest, GiveWayWhenTheirOwnAnswersAreSent) {
  const FakeDataset huge{"huge", {200'000, 200'000}};
  ReadOf(huge, 0, {.first = 0, .length = 10});
  RunStore();
  ReadOf(huge, 1, {.first = 0, .length = 10});
  RunStore();
  EXPECT_EQ(answers_.size(), 1U) << "the first sample is still being sent";
  answers_.clear();
  RunStore();
  EXPECT_EQ(answers_.size(), 1U);
  answers_.clear();
  Advance(ObjectReads::kLinger);
}

TEST_F(ObjectReadsTest, GiveWayToARankThatHasNothingStaged) {
  feeder_->batches().Ask(5, {.request = 1, .dataset = &large_, .ids = {4}});
  RunStore();
  ByteCount first = 0;
  for (const SampleId id : {0U, 1U, 0U}) {
    ReadOf(large_, id, {.first = first++, .length = 1});
    RunStore();
    answers_.clear();
  }
  EXPECT_EQ(reads_.reads(), 2U);
  const FakeDataset shards{"shards", {35'000, 35'000, 35'000}};
  const sampler::Recipe recipe{.kind = sampler::Kind::kSequential, .size = 3};
  ASSERT_TRUE(order_->Attach(shards, {.recipe = recipe, .ranks = {0}}).ok());
  RunStore();
  EXPECT_EQ(feeder_->readers().Find(1)->staged(), 1U);
  EXPECT_EQ(reads_.reads(), 1U) << "the one that was read last stays open";
  ReadOf(large_, 0, {.first = first, .length = 1});
  EXPECT_EQ(reads_.joined(), 2U);
  processes_.answers.clear();
  feeder_->OnClientGone(5);
  Advance(ObjectReads::kLinger);
}

// The older one gives back nothing at once, and goes nevertheless.
TEST_F(ObjectReadsTest, KeepTheOneThatWasReadLastThoughAnOlderOneIsBeingSent) {
  feeder_->batches().Ask(5, {.request = 1, .dataset = &large_, .ids = {4}});
  ReadOf(large_, 0, {.first = 0, .length = 1});
  RunStore();
  ReadOf(large_, 1, {.first = 0, .length = 1});
  RunStore();
  ASSERT_EQ(answers_.size(), 2U);
  answers_.pop_back();
  const FakeDataset shards{"shards", {35'000, 35'000, 35'000}};
  const sampler::Recipe recipe{.kind = sampler::Kind::kSequential, .size = 3};
  ASSERT_TRUE(order_->Attach(shards, {.recipe = recipe, .ranks = {0}}).ok());
  RunStore();
  EXPECT_EQ(reads_.reads(), 1U);
  ReadOf(large_, 1, {.first = 1, .length = 1});
  EXPECT_EQ(reads_.joined(), 1U) << "it stays open";
  answers_.clear();
  processes_.answers.clear();
  feeder_->OnClientGone(5);
  Advance(ObjectReads::kLinger);
}

TEST_F(ObjectReadsTest, HoldFewSamplesForWhatMayCome) {
  for (SampleId id = 0; id <= ObjectReads::kOpenMax; ++id) {
    Read(id, {.first = 0, .length = 10});
    RunStore();
    answers_.clear();
  }
  EXPECT_EQ(reads_.reads(), ObjectReads::kOpenMax);
}

TEST_F(ObjectReadsTest, HoldFewSamplesThatWereAllAskedForAtOnce) {
  constexpr SampleId kAtOnce = 100;
  static_assert(kAtOnce > ObjectReads::kOpenMax);
  for (SampleId id = 0; id < kAtOnce; ++id)
    Read(id, {.first = 0, .length = 10});
  EXPECT_EQ(reads_.reads(), kAtOnce);
  RunStore();
  EXPECT_EQ(answers_.size(), kAtOnce);
  EXPECT_EQ(reads_.reads(), ObjectReads::kOpenMax);
  Read(kAtOnce - 1, {.first = 10, .length = 10});
  EXPECT_EQ(reads_.joined(), 1U) << "the last ones stay";
  answers_.clear();
  Advance(ObjectReads::kLinger);
  EXPECT_EQ(reads_.reads(), 0U);
}

TEST_F(ObjectReadsTest, HoldAQuarterOfTheMemoryForWhatMayCome) {
  for (const SampleId id : {0U, 1U, 2U, 3U}) {
    ReadOf(large_, id, {.first = 0, .length = 10});
    RunStore();
    answers_.clear();
  }
  EXPECT_EQ(reads_.reads(), 2U);
  EXPECT_EQ(arena_.slots(), 2U);
  ReadOf(large_, 4, {.first = 0, .length = 10});
  RunStore();
  answers_.clear();
  EXPECT_EQ(reads_.reads(), 1U) << "one is held however large it is";
  ReadOf(large_, 4, {.first = 10, .length = 10});
  EXPECT_EQ(reads_.joined(), 1U);
}

TEST_F(ObjectReadsTest, TellEveryoneWhoWaitsOfAnError) {
  Read(3, {.first = 0, .length = 10});
  Read(3, {.first = 10, .length = 10});
  store_.End(0, {Code::kUnavailable, "the store is gone"});
  alarms_.RunDue();
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_EQ(answers_[0].error().message(), "the store is gone");
  EXPECT_EQ(answers_[1].error().code(), Code::kUnavailable);
  EXPECT_EQ(reads_.reads(), 0U);
}

TEST_F(ObjectReadsTest, HaveALimit) {
  for (std::size_t i = 0; i < ObjectReads::kReadsMax; ++i)
    Read(static_cast<SampleId>(i % 100), {.first = 0, .length = 100});
  EXPECT_TRUE(answers_.empty());
  Read(1, {.first = 0, .length = 100});
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].error().code(), Code::kResourceExhausted);
}

TEST_F(ObjectReadsTest, CountInTheOrderThatIsKnown) {
  const sampler::Recipe recipe{.kind = sampler::Kind::kSequential, .size = 100};
  ASSERT_TRUE(order_->Attach(dataset_, {.recipe = recipe, .ranks = {0}}).ok());
  Read(0, {.first = 0, .length = 100});
  EXPECT_TRUE(store_.pending.empty()) << "the order is not there yet";
  orders_.AnswerAll();
  Advance(std::chrono::milliseconds(10));
  RunStore();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(feeder_->readers().Find(1)->current()->delivered(), 1U);
  EXPECT_GT(store_.reads.size(), 1U) << "what comes next is staged";
}

TEST_F(ObjectReadsTest, AreNewInTheNextPassOfAnOrder) {
  const FakeDataset shards{"shards", {100, 100, 100}};
  const sampler::Recipe recipe{.kind = sampler::Kind::kSequential, .size = 3};
  ASSERT_TRUE(order_->Attach(shards, {.recipe = recipe, .ranks = {0}}).ok());
  RunStore();
  for (PassNumber pass = 0; pass < 3; ++pass) {
    for (SampleId id = 0; id < 3; ++id) {
      // The end of a shard, which says where its parts are, then two of these.
      for (const ByteCount first : {90U, 0U, 20U}) {
        ReadOf(shards, id, {.first = first, .length = 10});
        RunStore();
      }
      const Pass& present = *feeder_->readers().Find(1)->current();
      EXPECT_EQ(present.span().pass, pass);
      EXPECT_EQ(present.delivered(), id + 1);
    }
  }
  EXPECT_EQ(reads_.joined(), 3U * 3U * 2U);
  answers_.clear();
}

TEST_F(ObjectReadsTest, OfALastSampleThatIsOpenedAgainBeginNoPass) {
  const FakeDataset shards{"shards", {100, 100, 100}};
  const sampler::Recipe recipe{.kind = sampler::Kind::kSequential, .size = 3};
  ASSERT_TRUE(order_->Attach(shards, {.recipe = recipe, .ranks = {0}}).ok());
  RunStore();
  for (SampleId id = 0; id < 3; ++id) {
    for (const ByteCount first : {90U, 0U, 90U, 20U}) {
      ReadOf(shards, id, {.first = first, .length = 10});
      RunStore();
    }
  }
  EXPECT_EQ(feeder_->readers().Find(1)->current()->span().pass, 0U);
  EXPECT_EQ(reads_.joined(), 3U * 3U);
  answers_.clear();
}

TEST_F(ObjectReadsTest, DoNotWaitForAnOrderForEver) {
  const sampler::Recipe recipe{.kind = sampler::Kind::kSequential, .size = 100};
  ASSERT_TRUE(order_->Attach(dataset_, {.recipe = recipe, .ranks = {0}}).ok());
  Read(7, {.first = 0, .length = 100});
  for (Duration waited{}; waited <= ObjectReads::kOrderMax; waited += std::chrono::milliseconds(10))
    Advance(std::chrono::milliseconds(10));
  EXPECT_EQ(store_.reads[7], 1);
}

TEST_F(ObjectReadsTest, LeaveTrainingProcessesTheirAnswers) {
  feeder_->batches().Ask(5, {.request = 1, .dataset = &dataset_, .ids = {2}});
  RunStore();
  EXPECT_EQ(processes_.answers.size(), 1U);
  processes_.answers.clear();
  feeder_->OnClientGone(5);
}

}  // namespace
}  // namespace optcache::sidecar
