// The core as a whole: passes, staging and answers together. Its parts have tests of their own.

#include "sidecar/clients/feeder.h"

#include "unit/sidecar/feeder_fixture.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;

TEST_F(FeederTest, StagesInOrderAsFarAsTheArenaReaches) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  EXPECT_EQ(Reading(), Part(world_.Order(0), 0, 10));
}

// 4000 samples of 100 bytes, an arena for all of them, no node. What a reader of pass 0 gets staged
// is there.
class FeederOfALargeArena : public testing::Test {
 protected:
  FeederOfALargeArena() {
    world_.node.up = false;
    reader_ = world_.Attach(1);
    world_.Begin(reader_, 0);
    for (int i = 0; i < 40; ++i)
      world_.RunStore();
  }

  World world_{1'000'000, std::vector<ByteCount>(4000, 100), {.overflow_bytes = 2000}};
  ReaderId reader_ = 0;
};

TEST_F(FeederOfALargeArena, StagesAQuarterOfAPassAhead) {
  EXPECT_EQ(world_.store.reads.size(), 1000U);
}

// Asked for by its id, as one that somebody looks at between two batches.
TEST_F(FeederOfALargeArena, OneSampleFarAheadCostsNothingThatIsStaged) {
  const auto order = world_.Order(0);
  world_.Ask(2, 1, Part(order, 0, 4), reader_, 0, 0);
  world_.Ask(3, 2, Part(order, 3900, 1), reader_, 0);
  world_.RunStore();
  ASSERT_EQ(world_.clients.answers.size(), 2U);
  world_.Ask(2, 3, Part(order, 4, 900), reader_, 0, 4);
  EXPECT_EQ(world_.clients.answers.size(), 3U) << "they are staged still";
  EXPECT_EQ(world_.store.reads[order[4]], 1);
}

TEST(Feeder, StagesManySamplesInPartsSoThatOthersHaveTheirTurn) {
  World world{1'000'000, std::vector<ByteCount>(8000, 100), {.overflow_bytes = 2000}};
  const ReaderId reader = world.Attach(1);
  world.Begin(reader, 0);
  world.Run();
  EXPECT_EQ(world.feeder->readers().Find(reader)->staged(), 1024U);
  world.Advance(milliseconds(1));
  EXPECT_EQ(world.feeder->readers().Find(reader)->staged(), 2000U);
}

TEST_F(FeederTest, AnswersWhatIsStagedAtOnceAndInTheArena) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.RunStore();
  const auto ids = Part(world_.Order(0), 0, 4);
  world_.Ask(2, 11, ids, reader, 0, 0);
  ASSERT_EQ(world_.clients.answers.size(), 1U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(Answer(0).slots[i].has_value());
    EXPECT_TRUE(IsSample(ids[i], Answer(0).bytes[i]));
  }
}

TEST_F(FeederTest, TheWindowMovesWhenABatchIsReleased) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.RunStore();
  world_.Ask(2, 11, Part(world_.Order(0), 0, 4), reader, 0, 0);
  world_.Run();
  EXPECT_TRUE(Reading().empty()) << "the client still holds the slots";
  world_.feeder->batches().Release(2, Answer(0).batch);
  world_.Run();
  EXPECT_EQ(Reading(), Part(world_.Order(0), 10, 4));
}

TEST_F(FeederTest, OnlyTheClientThatHoldsABatchReleasesIt) {
  world_.Ask(2, 11, {1});
  world_.RunStore();
  world_.feeder->batches().Release(3, Answer(0).batch);
  EXPECT_EQ(world_.arena.slots(), 1U);
  world_.feeder->batches().Release(2, Answer(0).batch);
  EXPECT_EQ(world_.arena.slots(), 0U);
}

TEST_F(FeederTest, AClientThatDiesGivesItsSlotsBack) {
  world_.Ask(2, 11, {1, 2});
  world_.RunStore();
  world_.Ask(2, 12, {3});
  world_.feeder->OnClientGone(2);
  world_.RunStore();
  EXPECT_EQ(world_.arena.slots(), 0U);
  EXPECT_EQ(world_.clients.answers.size(), 1U);
}

TEST_F(FeederTest, AnUntaggedReadIsTheEarliestPositionWithThatSample) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.RunStore();
  const auto ids = Part(world_.Order(0), 2, 3);
  world_.Ask(2, 11, ids, reader, 0);
  ASSERT_EQ(world_.clients.answers.size(), 1U) << "they were staged";
  EXPECT_EQ(Counter("optcache_unpredicted_reads_total"), 0);
}

TEST_F(FeederTest, TheSameSampleTwiceInABatchIsOneRead) {
  world_.Ask(2, 11, {5, 5, 5});
  world_.RunStore();
  EXPECT_EQ(world_.store.reads[5], 1);
  EXPECT_EQ(Answer(0).slots[0], Answer(0).slots[2]);
}

TEST_F(FeederTest, TwoRanksMayWantOneSampleAtATime) {
  const ReaderId first = world_.Attach(1, 2, 0);
  const ReaderId second = world_.Attach(3, 2, 1);
  world_.Begin(first, 0, 2, 0);
  world_.Begin(second, 0, 2, 1);
  world_.Run();
  EXPECT_EQ(Reading().size(), 10U);
  world_.Ask(2, 11, Part(world_.Order(0, 2, 0), 0, 5), first, 0, 0);
  world_.Ask(4, 12, Part(world_.Order(0, 2, 1), 0, 5), second, 0, 0);
  world_.RunStore();
  EXPECT_EQ(world_.clients.answers.size(), 2U);
}

TEST_F(FeederTest, RunsOnIntoTheNextPassBeforeItIsAnnounced) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.RunStore();
  const auto order = world_.Order(0);
  for (std::size_t first = 0; first < 40; first += 5) {
    world_.Ask(2, first, Part(order, first, 5), reader, 0, first);
    world_.RunStore();
    world_.feeder->batches().Release(2, world_.clients.answers.back().batch);
    world_.RunStore();
  }
  world_.store.reads.clear();
  world_.Begin(reader, 1);
  world_.Ask(2, 99, Part(world_.Order(1), 0, 8), reader, 1, 0);
  EXPECT_EQ(world_.clients.answers.size(), 9U) << "staged before the pass was announced";
  EXPECT_TRUE(world_.store.reads.empty());
}

TEST_F(FeederTest, AnEpochThatWasNotPredictedReleasesWhatWasStaged) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.RunStore();
  ASSERT_TRUE(world_.feeder->readers()
                  .Begin(reader, {.pass = 1, .epoch = 7, .begin = 0, .end = 40}, std::nullopt)
                  .ok());
  EXPECT_EQ(world_.arena.slots(), 0U);
  world_.Run();
  EXPECT_EQ(Reading(), Part(world_.Order(7), 0, 10));
}

TEST_F(FeederTest, AnUnknownOrderIsServedOnDemand) {
  const ReaderId reader = world_.Attach(1);
  ASSERT_TRUE(world_.feeder->readers()
                  .Begin(reader, {.pass = 0, .epoch = 0, .begin = 0, .end = 40}, 12345)
                  .ok());
  world_.Run();
  EXPECT_TRUE(Reading().empty());
  world_.Ask(2, 11, {7, 3, 9}, reader, 0, 0);
  world_.RunStore();
  ASSERT_EQ(world_.clients.answers.size(), 1U);
  EXPECT_TRUE(IsSample(3, Answer(0).bytes[1]));
}

TEST_F(FeederTest, ABatchThatWasNotPredictedIsServedAsAsked) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.RunStore();
  auto ids = Part(world_.Order(0), 0, 3);
  std::swap(ids[0], ids[2]);
  world_.Ask(2, 11, ids, reader, 0, 0);
  world_.RunStore();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(IsSample(ids[i], Answer(0).bytes[i]));
  EXPECT_EQ(Counter("optcache_unknown_orders_total"), 1);
}

TEST_F(FeederTest, AFailedSampleIsThatSamplesErrorOnly) {
  world_.Ask(2, 11, {1, 2});
  world_.Run();
  world_.store.End(0, Status(Code::kNotFound, "images/1.png is gone"));
  world_.store.End(0);
  EXPECT_EQ(Answer(0).status[0].message(), "images/1.png is gone");
  EXPECT_TRUE(Answer(0).status[1].ok());
  EXPECT_TRUE(IsSample(2, Answer(0).bytes[1]));
}

TEST_F(FeederTest, AStagedSampleThatFailedIsTriedAgainWhenAskedFor) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  world_.store.End(0, Status(Code::kUnavailable, "not now"));
  world_.RunStore();
  world_.Ask(2, 11, Part(world_.Order(0), 0, 1), reader, 0, 0);
  world_.RunStore();
  EXPECT_TRUE(Answer(0).status[0].ok());
}

TEST_F(FeederTest, ARestartedSidecarServesFromTheMiddleAndAgain) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  const auto ids = Part(world_.Order(0), 30, 4);
  for (std::uint64_t request = 0; request < 2; ++request) {
    world_.Ask(2, request, ids, reader, 0, 30);
    world_.RunStore();
    EXPECT_TRUE(IsSample(ids[3], world_.clients.answers.back().bytes[3]));
    world_.feeder->batches().Release(2, world_.clients.answers.back().batch);
  }
  EXPECT_EQ(world_.clients.answers.size(), 2U);
}

TEST_F(FeederTest, BeginsNoReadOfTheStoreAfterItGaveUp) {
  World world(3000, std::vector<ByteCount>(40, 100), {.fetch = {.store_concurrency = 2}});
  world.node.up = false;
  const ReaderId reader = world.Attach(1);
  world.Begin(reader, 0);
  world.Ask(2, 11, {30, 31, 32});
  world.Run();
  ASSERT_EQ(world.store.pending.size(), 2U);
  world.feeder->GiveUp();
  for (int read = 0; read < 2; ++read) {
    world.store.End(0, Status(Code::kCancelled, "shut down"));
    world.Run();
  }
  EXPECT_TRUE(world.store.pending.empty());
  EXPECT_EQ(world.arena.slots(), 0U);
  EXPECT_TRUE(world.clients.answers.empty());
}

TEST_F(FeederTest, RefusesWhatIsNotInTheDataset) {
  world_.Ask(2, 11, {40});
  world_.Ask(2, 12, {});
  ASSERT_EQ(world_.clients.refused.size(), 2U);
  EXPECT_EQ(world_.clients.refused[0].second.message(),
            "dataset 'images' has no sample 40: it has 40, counted from 0");
}

TEST_F(FeederTest, AWholePassReadsEachSampleOfTheStoreOnce) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  const auto order = world_.Order(0);
  // Two workers in turn, the second ahead of the first, each holding its last batch.
  std::map<ClientId, BatchId> held;
  for (std::size_t first = 0; first < 40; first += 16) {
    for (const std::size_t at : {first + 8, first}) {
      if (at >= 40) continue;
      const ClientId worker = 2 + (at / 8) % 2;
      world_.Ask(worker, at, Part(order, at, 8), reader, 0, at);
      world_.RunStore();
      world_.feeder->batches().Release(worker, held[worker]);
      held[worker] = world_.clients.answers.back().batch;
    }
  }
  EXPECT_EQ(world_.clients.answers.size(), 5U);
  for (SampleId id = 0; id < 40; ++id) {
    // The first samples of the next pass may have been staged as well.
    EXPECT_LE(world_.store.reads[id], 2);
  }
  int reads = 0;
  for (const auto& [id, count] : world_.store.reads)
    reads += count;
  EXPECT_LE(reads, 40 + 10);
}

TEST_F(FeederTest, StagedReadsComeFromTheNodeInOneGet) {
  world_.node.up = true;
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  const auto gets = world_.node.All<wire::Get>();
  ASSERT_EQ(gets.size(), 1U);
  EXPECT_EQ(gets[0].items.size(), 10U);
  EXPECT_EQ(gets[0].mode, wire::GetMode::kStage);
  EXPECT_TRUE(world_.store.reads.empty());
}

TEST_F(FeederTest, WhatATrainerWaitsForIsAskedForUrgently) {
  world_.node.up = true;
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  world_.Ask(2, 11, Part(world_.Order(0), 12, 2), reader, 0, 12);
  world_.Run();
  const auto gets = world_.node.All<wire::Get>();
  ASSERT_EQ(gets.size(), 2U);
  EXPECT_EQ(gets[1].mode, wire::GetMode::kUrgent);
  EXPECT_EQ(gets[1].items[0].position, 12U);
}

}  // namespace
}  // namespace optcache::sidecar
