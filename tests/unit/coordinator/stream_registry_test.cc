#include "coordinator/stream_registry.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

constexpr MonotonicTime kRegistryBegin{std::chrono::hours(1)};
constexpr StreamRegistry::Silence kRegistrySilence{.rank = std::chrono::seconds(30),
                                                   .stream = std::chrono::minutes(10)};
constexpr Version kPresentGeneration{.term = 0, .counter = 1};
constexpr Version kNextGeneration{.term = 0, .counter = 2};

RankReport RankOf(Rank rank, std::uint32_t world, PassNumber pass = 0) {
  return {.rank = rank,
          .recipe = {.size = 100, .world = world},
          .started = true,
          .pass = pass,
          .start = rank,
          .position = rank};
}

StreamReport StreamOf(StreamId id, std::uint32_t incarnation, std::vector<RankReport> ranks) {
  return {.id = id,
          .name = "vision/job/imagenet/train",
          .incarnation = incarnation,
          .dataset = "vision/imagenet",
          .dataset_key = 1,
          .ranks = std::move(ranks)};
}

// Stream 1 of two ranks in pass 3, through members 1 and 2.
StreamRegistry TwoRanks() {
  StreamRegistry registry;
  const StreamReport report = StreamOf(1, 1, {RankOf(0, 2, 3), RankOf(1, 2, 3)});
  registry.Begin(report, kPresentGeneration, kRegistryBegin);
  registry.Observe(1, report.ranks[0], 1, kRegistryBegin);
  registry.Observe(1, report.ranks[1], 2, kRegistryBegin);
  return registry;
}

TEST(StreamRegistry, ANextGenerationTakesThePlaceWhenAllOfItsRanksAreKnown) {
  StreamRegistry registry = TwoRanks();
  const StreamReport again = StreamOf(1, 1, {RankOf(0, 2), RankOf(1, 2)});
  ASSERT_TRUE(registry.NeedsNextGeneration(1, again.ranks[0]));
  registry.BeginNextGeneration(again, kNextGeneration, kRegistryBegin);
  EXPECT_FALSE(registry.NeedsNextGeneration(1, again.ranks[1])) << "it has one";
  registry.Observe(1, again.ranks[0], 1, kRegistryBegin);
  EXPECT_TRUE(registry.EndStreams(kRegistrySilence, kRegistryBegin).empty());
  EXPECT_EQ(registry.streams().at(1).generation(), kPresentGeneration);
  registry.Observe(1, again.ranks[1], 2, kRegistryBegin);
  EXPECT_EQ(registry.EndStreams(kRegistrySilence, kRegistryBegin), std::vector<StreamId>{1});
  EXPECT_EQ(registry.streams().at(1).generation(), kNextGeneration);
}

TEST(StreamRegistry, CountsTheLargerGenerationOfAStream) {
  StreamRegistry registry = TwoRanks();
  const StreamReport larger = StreamOf(1, 1, {RankOf(0, 5)});
  registry.BeginNextGeneration(larger, kNextGeneration, kRegistryBegin);
  registry.Observe(1, larger.ranks[0], 1, kRegistryBegin);
  EXPECT_EQ(registry.ranks(), 5U);
  EXPECT_EQ(registry.CountRanks(larger.name).named, 5U);
  EXPECT_EQ(registry.CountRanks(larger.name).others, 0U);
  EXPECT_EQ(registry.CountRanks("another").named, std::nullopt);
  EXPECT_EQ(registry.CountRanks("another").others, 5U);
}

TEST(StreamRegistry, AnIdIsOfOneNameAndIncarnation) {
  const StreamRegistry registry = TwoRanks();
  EXPECT_FALSE(registry.IsIdOfAnother(StreamOf(1, 1, {})));
  EXPECT_TRUE(registry.IsIdOfAnother(StreamOf(1, 2, {})));
  EXPECT_FALSE(registry.IsIdOfAnother(StreamOf(2, 2, {})));
}

TEST(StreamRegistry, EndsEarlierIncarnationsAlone) {
  StreamRegistry registry = TwoRanks();
  EXPECT_TRUE(registry.HasLater(StreamOf(2, 0, {})));
  registry.EndEarlier(StreamOf(2, 1, {}));
  EXPECT_FALSE(registry.empty());
  registry.EndEarlier(StreamOf(2, 2, {}));
  EXPECT_TRUE(registry.empty());
}

TEST(StreamRegistry, ASilentStreamHasEnded) {
  StreamRegistry registry = TwoRanks();
  registry.EndStreams(kRegistrySilence, kRegistryBegin + kRegistrySilence.stream);
  EXPECT_FALSE(registry.empty());
  EXPECT_TRUE(registry.streams().at(1).NobodyReads()) << "its ranks are lost";
  registry.EndStreams(kRegistrySilence,
                      kRegistryBegin + kRegistrySilence.stream + std::chrono::seconds(1));
  EXPECT_TRUE(registry.empty());
}

}  // namespace
}  // namespace optcache::coordination
