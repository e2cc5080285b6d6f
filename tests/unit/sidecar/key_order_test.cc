#include "sidecar/s3/key_order.h"

#include <algorithm>

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

constexpr ClientId kClient = 99;

// 40 samples, an arena for all of them, no node.
class KeyOrderTest : public testing::Test {
 protected:
  KeyOrderTest() { world_.node.up = false; }
  void Attach(std::uint32_t world, const std::vector<Rank>& ranks) {
    const Status attached =
        order_.Attach(world_.dataset, {.recipe = world_.Recipe(world), .ranks = ranks});
    ASSERT_TRUE(attached.ok()) << attached.message();
    world_.Run();
  }
  // Asks for the sample as the endpoint does, and has it delivered.
  KeyTag Read(SampleId id) {
    const KeyTag tag = order_.Take(world_.dataset, id);
    world_.Ask(1, ++request_, {id}, tag.reader, tag.pass);
    world_.RunStore();
    return tag;
  }
  std::vector<KeyTag> ReadPass(std::uint64_t epoch, std::uint32_t world = 1, Rank rank = 0) {
    std::vector<KeyTag> tags;
    for (const SampleId id : world_.Order(epoch, world, rank))
      tags.push_back(Read(id));
    return tags;
  }
  static std::vector<KeyTag> All(std::size_t count, ReaderId reader, PassNumber pass) {
    return std::vector<KeyTag>(count, {.reader = reader, .pass = pass});
  }

  World world_{8000, std::vector<ByteCount>(40, 100), {.overflow_bytes = 2000}};
  KeyOrder order_{world_.feeder->readers(), kClient};
  std::uint64_t request_ = 0;
};

TEST_F(KeyOrderTest, FollowsPassAfterPass) {
  Attach(1, {0});
  EXPECT_EQ(ReadPass(0), All(40, 1, 0));
  EXPECT_EQ(ReadPass(1), All(40, 1, 1));
  EXPECT_EQ(ReadPass(2), All(40, 1, 2));
}

TEST_F(KeyOrderTest, FollowsAJobThatGoesOnInALaterEpoch) {
  ASSERT_TRUE(
      order_.Attach(world_.dataset, {.recipe = world_.Recipe(1), .ranks = {0}, .epoch = 7}).ok());
  world_.Run();
  EXPECT_EQ(ReadPass(7), All(40, 1, 0));
  EXPECT_EQ(ReadPass(8), All(40, 1, 1));
  EXPECT_EQ(ReadPass(9), All(40, 1, 2));
}

TEST_F(KeyOrderTest, KnowsWhichRankOfThePodReads) {
  Attach(4, {2, 3});
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto second = world_.Order(epoch, 4, 2);
    const auto third = world_.Order(epoch, 4, 3);
    const auto pass = static_cast<PassNumber>(epoch);
    for (std::size_t i = 0; i < second.size(); ++i) {
      EXPECT_EQ(Read(second[i]), (KeyTag{.reader = 1, .pass = pass})) << epoch << " " << i;
      EXPECT_EQ(Read(third[i]), (KeyTag{.reader = 2, .pass = pass})) << epoch << " " << i;
    }
  }
}

TEST_F(KeyOrderTest, GoesOnAfterAPassThatEndsEarly) {
  Attach(1, {0});
  const auto first = world_.Order(0);
  for (std::size_t i = 0; i < 35; ++i)
    EXPECT_EQ(Read(first[i]).pass, 0U);
  std::size_t without_order = 0;
  std::size_t in_next = 0;
  for (const SampleId id : world_.Order(1)) {
    const KeyTag tag = Read(id);
    if (tag == KeyTag{}) ++without_order;
    if (tag.pass == 1) ++in_next;
  }
  EXPECT_EQ(without_order, KeyOrder::kRepeats);
  EXPECT_GE(in_next, 40 - KeyOrder::kRepeats - 5);
}

TEST_F(KeyOrderTest, FindsNothingBeyondTheOrderOfOtherPods) {
  Attach(2, {0});
  const auto others = world_.Order(0, 2, 1);
  for (std::size_t i = 0; i < KeyOrder::kRepeats; ++i)
    EXPECT_EQ(Read(others[i]), KeyTag{});
  EXPECT_EQ(ReadPass(0, 2, 0), All(20, 1, 0));
}

TEST_F(KeyOrderTest, AwaitsAnOrderThatIsBeingMade) {
  ASSERT_TRUE(order_.Attach(world_.dataset, {.recipe = world_.Recipe(), .ranks = {0}}).ok());
  EXPECT_TRUE(order_.Awaits(world_.dataset));
  EXPECT_EQ(order_.Take(world_.dataset, 0), KeyTag{});
  world_.Run();
  EXPECT_FALSE(order_.Awaits(world_.dataset));
  EXPECT_EQ(order_.Take(world_.dataset, 0), (KeyTag{.reader = 1, .pass = 0}));
}

TEST_F(KeyOrderTest, FindsRanksThatProcessesAttached) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  EXPECT_EQ(Read(world_.Order(0)[3]), (KeyTag{.reader = reader, .pass = 0}));
  FakeDataset other("other", {100});
  EXPECT_EQ(order_.Take(other, 0), KeyTag{});
}

TEST_F(KeyOrderTest, AttachesAllRanksOrNone) {
  sampler::Recipe wrong = world_.Recipe();
  wrong.size = 7;
  EXPECT_FALSE(order_.Attach(world_.dataset, {.recipe = wrong, .ranks = {0}}).ok());
  EXPECT_FALSE(order_.Attach(world_.dataset, {.recipe = world_.Recipe(2), .ranks = {1, 2}}).ok());
  EXPECT_TRUE(std::ranges::all_of(world_.feeder->readers().readers(),
                                  [](const auto& entry) { return entry.second.ended(); }));
  EXPECT_FALSE(order_.Awaits(world_.dataset));
}

}  // namespace
}  // namespace optcache::sidecar
