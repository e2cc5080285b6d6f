// The meter in the whole core, as nothing of it can be seen without.

#include "sidecar/clients/headspace_meter.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

using headspace::State;
using std::chrono::milliseconds;

constexpr std::size_t kBatch = 4;
constexpr headspace::Options kFew{
    .warmup_steps = 10, .steps = 20, .free_steps = 20, .run_steps = 0};
// Until it is measured, and some more: first is used up what may have been staged.
constexpr int kBatchesInAll = 10 + 250 + 4 + 20 + 16 + 5 + 20 + 20;

std::vector<ByteCount> SizesBy(const std::function<ByteCount(std::size_t)>& size) {
  std::vector<ByteCount> sizes(4000);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = size(i);
  return sizes;
}

// 4,000 samples, an arena of 10,000 bytes, no node.
class HeadspaceMeterTest : public testing::Test {
 protected:
  explicit HeadspaceMeterTest(const std::function<ByteCount(std::size_t)>& size =
                                  [](std::size_t) { return 100; })
      : world_(10'000, SizesBy(size), {.overflow_bytes = 40'000, .headspace = kFew}) {
    world_.node.up = false;
  }
  struct Reading {
    ReaderId reader = 0;
    ClientId client = 0;
    std::vector<SampleId> order;
    std::size_t at = 0;
  };
  Reading Attach(ClientId client, const std::string& loader = "train", std::uint32_t world = 1,
                 Rank rank = 0) {
    const ReaderId reader = world_.Attach(client, world, rank, loader);
    world_.Begin(reader, 0, world, rank);
    return {.reader = reader, .client = client, .order = world_.Order(0, world, rank)};
  }
  // One step: computes, then reads the next batch, which takes `fetch` if it is not there at once.
  // The batch's bytes, as they were handed out.
  std::vector<std::vector<std::byte>> Step(Reading& reading, milliseconds compute,
                                           milliseconds fetch) {
    world_.Advance(compute);
    const auto begin = reading.order.begin() + static_cast<std::ptrdiff_t>(reading.at);
    asked_.assign(begin, begin + kBatch);
    const std::size_t answers = world_.clients.answers.size();
    world_.Ask(reading.client, ++request_, asked_, reading.reader, 0, reading.at);
    reading.at += kBatch;
    if (world_.clients.answers.size() == answers) {
      world_.clock.Advance(fetch);
      world_.RunStore();
    }
    const FakeClients::Answer answer = world_.clients.answers.back();
    world_.feeder->batches().Release(reading.client, answer.batch);
    world_.Run();
    return answer.bytes;
  }
  void StepUntil(Reading& reading, State state) {
    for (int i = 0; i < 2 * kBatchesInAll && Report().state != state; ++i)
      Step(reading, milliseconds(100), milliseconds(300));
    ASSERT_EQ(Report().state, state) << Report().message;
  }
  bool AsAskedFor(const std::vector<std::vector<std::byte>>& bytes) const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!IsSample(asked_[i], bytes[i])) return false;
    }
    return true;
  }
  headspace::Report Report() const { return world_.feeder->headspace()->Report(); }

  World world_;
  std::vector<SampleId> asked_;
  std::uint64_t request_ = 0;
};

TEST_F(HeadspaceMeterTest, GivesTheSameSamplesAtOnceAndThenThoseAskedForAgain) {
  Reading reading = Attach(1);
  EXPECT_EQ(Report().state, State::kWaiting);
  StepUntil(reading, State::kMeasuring);
  StepUntil(reading, State::kFree);
  world_.RunStore();
  const auto reads = world_.store.reads.size();
  while (Report().state == State::kFree) {
    const auto bytes = Step(reading, milliseconds(100), milliseconds(300));
    ASSERT_EQ(bytes.size(), kBatch);
    for (const auto& one : bytes)
      EXPECT_EQ(one.size(), 100U);
    if (Report().state == State::kFree) {
      EXPECT_FALSE(AsAskedFor(bytes));
      EXPECT_EQ(world_.store.reads.size(), reads) << "nothing is read meanwhile";
    }
  }
  EXPECT_EQ(Report().state, State::kDone);
  EXPECT_TRUE(AsAskedFor(Step(reading, milliseconds(100), milliseconds(300))));
}

TEST_F(HeadspaceMeterTest, MeasuresWhatWaitingCosts) {
  Reading reading = Attach(1);
  StepUntil(reading, State::kDone);
  const headspace::Report report = Report();
  EXPECT_NEAR(report.free->seconds, .1, 1e-6);
  EXPECT_GT(report.gain->speedup, 1);
  EXPECT_EQ(report.now->hit_ratio, 0);
  EXPECT_EQ(report.now->samples, kBatch);
  EXPECT_EQ(report.free->bytes, 400);
  EXPECT_EQ(report.loader, "local/local/images/train");
}

TEST_F(HeadspaceMeterTest, UsesUpWhatWasStagedBeforeItMeasures) {
  Reading reading = Attach(1);
  world_.RunStore();
  const RankReader& reader = *world_.feeder->readers().Find(reading.reader);
  EXPECT_EQ(reader.staged(), 100U);
  StepUntil(reading, State::kMeasuring);
  while (reader.staging_held()) {
    const std::size_t staged = reader.staged();
    Step(reading, milliseconds(1), milliseconds(1));
    EXPECT_TRUE(reader.staged() < staged || !reader.staging_held());
  }
  EXPECT_EQ(Report().measured_steps, 0U);
}

TEST_F(HeadspaceMeterTest, ALaterReportIsTheSame) {
  Reading reading = Attach(1);
  StepUntil(reading, State::kDone);
  const std::string message = Report().message;
  Step(reading, milliseconds(5000), milliseconds(300));
  world_.feeder->OnClientGone(1);
  EXPECT_EQ(Report().state, State::kDone);
  EXPECT_EQ(Report().message, message);
}

TEST_F(HeadspaceMeterTest, StagesAgainWhenItIsDone) {
  Reading reading = Attach(1);
  StepUntil(reading, State::kDone);
  world_.RunStore();
  EXPECT_NE(world_.feeder->readers().Find(reading.reader)->current()->staged(), 0U);
}

TEST_F(HeadspaceMeterTest, AJobThatEndsBeforeSaysSo) {
  Reading reading = Attach(1);
  StepUntil(reading, State::kMeasuring);
  world_.feeder->OnClientGone(1);
  EXPECT_EQ(Report().state, State::kEndedEarly);
  EXPECT_NE(Report().message.find("reads no more"), std::string::npos) << Report().message;
}

TEST_F(HeadspaceMeterTest, ALoaderThatComesBackIsMeasuredOn) {
  Reading reading = Attach(1);
  StepUntil(reading, State::kMeasuring);
  world_.feeder->OnClientGone(1);
  const std::size_t at = reading.at;
  reading = Attach(2);
  reading.at = at;
  EXPECT_EQ(Report().state, State::kMeasuring);
  StepUntil(reading, State::kDone);
}

TEST_F(HeadspaceMeterTest, TheFirstStreamToWarmUpIsMeasuredAlone) {
  Reading train = Attach(2, "train");
  Step(train, milliseconds(10), milliseconds(10));
  Reading validation = Attach(1, "validation");
  for (int i = 0; i < 5; ++i)
    Step(validation, milliseconds(10), milliseconds(10));
  StepUntil(train, State::kFree);
  EXPECT_EQ(Report().loader, "local/local/images/train");
  for (int i = 0; i < kBatchesInAll; ++i)
    EXPECT_TRUE(AsAskedFor(Step(validation, milliseconds(10), milliseconds(10))));
  EXPECT_EQ(Report().state, State::kFree);
}

TEST_F(HeadspaceMeterTest, AValidationWithinAPassIsNoStep) {
  Reading train = Attach(1, "train");
  for (int i = 0; i < kBatchesInAll && Report().measured_steps < 5; ++i)
    Step(train, milliseconds(100), milliseconds(300));
  ASSERT_EQ(Report().measured_steps, 5U);
  Reading validation = Attach(2, "validation");
  for (int i = 0; i < 10; ++i)
    Step(validation, milliseconds(5000), milliseconds(300));
  StepUntil(train, State::kDone);
  EXPECT_LE(Report().now->seconds, .4 + 1e-6);
}

TEST_F(HeadspaceMeterTest, AllRanksOfTheStreamAreMeasured) {
  Reading one = Attach(1, "train", 2, 0);
  Reading other = Attach(2, "train", 2, 1);
  for (int i = 0; i < kBatchesInAll; ++i) {
    Step(one, milliseconds(50), milliseconds(0));
    Step(other, milliseconds(50), milliseconds(0));
  }
  EXPECT_EQ(Report().state, State::kDone);
  EXPECT_EQ(Report().ranks, 2U);
  EXPECT_NEAR(Report().free->seconds, .1, 1e-6);
}

TEST_F(HeadspaceMeterTest, ARankThatEndsEarlyDoesNotHoldUpTheOther) {
  Reading one = Attach(1, "train", 2, 0);
  Reading other = Attach(2, "train", 2, 1);
  for (int i = 0; i < 30; ++i) {
    Step(one, milliseconds(50), milliseconds(0));
    Step(other, milliseconds(50), milliseconds(0));
  }
  world_.feeder->OnClientGone(2);
  StepUntil(one, State::kDone);
  EXPECT_EQ(Report().ranks, 1U);
}

TEST_F(HeadspaceMeterTest, ReadsWithoutALoaderAreLeftAlone) {
  for (int i = 0; i < kBatchesInAll; ++i) {
    world_.Ask(1, ++request_, {1, 2, 3, 4});
    world_.RunStore();
    world_.feeder->batches().Release(1, world_.clients.answers.back().batch);
  }
  EXPECT_EQ(Report().state, State::kWaiting);
}

TEST_F(HeadspaceMeterTest, TheHoursOfTheRunAreThoseOfTheAnnouncedPasses) {
  auto reader = world_.feeder->readers().Attach(
      1, {.dataset = &world_.dataset, .recipe = world_.Recipe(), .passes = 90});
  ASSERT_TRUE(reader.has_value());
  world_.Begin(*reader, 0);
  Reading reading{.reader = *reader, .client = 1, .order = world_.Order(0)};
  StepUntil(reading, State::kDone);
  EXPECT_EQ(Report().run->steps, 90'000U);
  EXPECT_TRUE(Report().run->announced);
}

// Sizes as of two kinds of samples that lie one beside the other.
class HeadspaceOfTwoKinds : public HeadspaceMeterTest {
 protected:
  HeadspaceOfTwoKinds()
      : HeadspaceMeterTest([](std::size_t i) { return i % 2 == 0 ? 20 : 200 + i % 10; }) {}
};

TEST_F(HeadspaceOfTwoKinds, AreReplacedByTheirOwnKind) {
  Reading reading = Attach(1);
  StepUntil(reading, State::kFree);
  while (Report().state == State::kFree) {
    const auto bytes = Step(reading, milliseconds(100), milliseconds(300));
    for (std::size_t i = 0; i < kBatch; ++i) {
      if (asked_[i] % 2 == 0) {
        EXPECT_EQ(bytes[i].size(), 20U);
      } else {
        EXPECT_GE(bytes[i].size(), 200U);
      }
    }
  }
}

// More than a quarter of the arena each.
class HeadspaceOfLargeSamples : public HeadspaceMeterTest {
 protected:
  HeadspaceOfLargeSamples() : HeadspaceMeterTest([](std::size_t) { return 2600; }) {}
};

TEST_F(HeadspaceOfLargeSamples, SaysThatTheArenaIsTooSmall) {
  Reading reading = Attach(1);
  StepUntil(reading, State::kEndedEarly);
  EXPECT_NE(Report().message.find("--arena"), std::string::npos) << Report().message;
  EXPECT_TRUE(AsAskedFor(Step(reading, milliseconds(100), milliseconds(300))));
}

TEST(HeadspaceMeter, IsThereOnlyIfItIsAskedFor) {
  World world(1000, std::vector<ByteCount>(40, 100));
  EXPECT_EQ(world.feeder->headspace(), nullptr);
}

}  // namespace
}  // namespace optcache::sidecar
