// What of the core does not fit into the arena.

#include <numeric>

#include "sidecar/clients/feeder.h"
#include "unit/sidecar/feeder_fixture.h"

namespace optcache::sidecar {
namespace {

TEST_F(FeederTest, WhatTheArenaCannotTakeComesByCopy) {
  std::vector<SampleId> ids(15);
  std::iota(ids.begin(), ids.end(), 0);
  world_.Ask(2, 11, ids);
  world_.RunStore();
  ASSERT_EQ(world_.clients.answers.size(), 1U);
  EXPECT_EQ(std::count(Answer(0).slots.begin(), Answer(0).slots.end(), std::nullopt), 5);
  EXPECT_EQ(Counter("optcache_client_copied_samples_total"), 5);
  EXPECT_EQ(Counter("optcache_overflow_bytes", "asked"), 0) << "freed with the answer";
}

TEST_F(FeederTest, RequestsQueueForTheOverflowAndEachIsAnswered) {
  std::vector<SampleId> ids(30);
  std::iota(ids.begin(), ids.end(), 0);
  world_.Ask(2, 11, ids);  // ten in the arena, twenty beyond the overflow's half: alone
  world_.Ask(3, 12, {31, 32});
  world_.Run();
  EXPECT_EQ(Counter("optcache_overflow_bytes", "asked"), 2000);
  EXPECT_NE(world_.feeder->batches().WhyWaiting(3, 12).find("2 of them wait for memory"),
            std::string::npos);
  world_.store.waits = {"the store of a, for 31 s by 2 requests: refused"};
  EXPECT_NE(world_.feeder->batches().WhyWaiting(3, 12).find(
                "; waiting for the store of a, for 31 s by 2 requests: refused"),
            std::string::npos);
  world_.RunStore();
  EXPECT_EQ(world_.clients.answers.size(), 2U);
}

TEST(Feeder, WhatNeitherArenaNorOverflowCouldHoldIsRefusedBeforeItIsRead) {
  World world{1000, {100, 300_MiB, 200_MiB}, {.overflow_bytes = 256_MiB}};
  world.node.up = false;
  world.Ask(2, 11, {1});
  ASSERT_EQ(world.clients.refused.size(), 1U);
  const auto& [request, why] = world.clients.refused.front();
  EXPECT_EQ(request, 11U);
  EXPECT_EQ(why.code(), Code::kInvalidArgument);
  for (const char* const part :
       {"300 MiB", "1000 B", "256 MiB", "--arena or --overflow of at least 600 MiB"})
    EXPECT_NE(why.message().find(part), std::string::npos) << why.message();
  world.feeder->batches().Ask(2, {.request = 12,
                                  .dataset = &world.dataset,
                                  .ids = {2},
                                  .first = std::nullopt,
                                  .copy_max = 100_MiB});
  ASSERT_EQ(world.clients.refused.size(), 2U) << "an answer by copy carries less";
  EXPECT_EQ(world.clients.refused.back().second.message().find("--overflow"), std::string::npos);
  world.Run();
  EXPECT_TRUE(world.store.reads.empty());
  EXPECT_EQ(world.feeder->memory().overflow_in_use(), 0U);
}

TEST(Feeder, WhatHasNoRoomInAFullArenaIsCopiedWithinTheOverflowOrRefused) {
  World world{100_MiB, {90_MiB, 80_MiB, 60_MiB}, {.overflow_bytes = 16_MiB}};
  world.node.up = false;
  world.Ask(2, 11, {0});
  world.Ask(3, 12, {1});
  world.Ask(4, 13, {2});
  world.Run();
  ASSERT_EQ(world.clients.refused.size(), 1U);
  EXPECT_EQ(world.clients.refused.front().first, 12U);
  EXPECT_EQ(world.clients.refused.front().second.code(), Code::kResourceExhausted);
  EXPECT_NE(world.clients.refused.front().second.message().find("--overflow 16.0 MiB"),
            std::string::npos);
  EXPECT_EQ(world.feeder->memory().overflow_in_use(), 60_MiB) << "the next is not held up";
  EXPECT_EQ(world.feeder->batches().waiting(), 2U);
}

TEST_F(FeederTest, LargeSamplesAreStagedOutsideTheArena) {
  std::vector<ByteCount> sizes(40, 100);
  World world(1000, sizes, {.overflow_bytes = 4000});
  world.node.up = false;
  const SampleId large = world.Order(0)[2];
  sizes[large] = 1500;
  World with_large(1000, sizes, {.overflow_bytes = 4000});
  with_large.node.up = false;
  const ReaderId reader = with_large.Attach(1);
  with_large.Begin(reader, 0);
  with_large.RunStore();
  with_large.Ask(2, 11, Part(with_large.Order(0), 0, 4), reader, 0, 0);
  ASSERT_EQ(with_large.clients.answers.size(), 1U) << "all were staged";
  EXPECT_FALSE(with_large.clients.answers[0].slots[2].has_value());
  EXPECT_TRUE(IsSample(large, with_large.clients.answers[0].bytes[2]));
}

TEST_F(FeederTest, RefusesMoreBytesAtOnceUnlessTheyAreOneSample) {
  World world(1000, {BatchService::kBatchBytesMax, BatchService::kBatchBytesMax + 1, 1, 0}, {});
  world.Ask(2, 11, {0, 2});
  ASSERT_EQ(world.clients.refused.size(), 1U);
  EXPECT_EQ(world.clients.refused[0].second.message(),
            "a request for 2 samples of 64.0 MiB together; ask for fewer, for 64.0 MiB at once");
  world.Ask(2, 12, {0, 3});
  world.Ask(2, 13, {1});
  EXPECT_EQ(world.clients.refused.size(), 1U);
  EXPECT_EQ(world.feeder->batches().waiting(), 2U);
}

}  // namespace
}  // namespace optcache::sidecar
