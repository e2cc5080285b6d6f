#include "sidecar/ports/sample_memory.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

TEST(SampleMemory, GivesSlotsOfTheArenaUntilThereIsNoRoom) {
  FakeArena arena(100);
  SampleMemory memory(arena, 0, {});
  BufferRef first = memory.AllocateInArena(60);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->bytes().size(), 60U);
  EXPECT_EQ(memory.AllocateInArena(60), nullptr);
  first.reset();
  EXPECT_NE(memory.AllocateInArena(60), nullptr);
}

TEST(SampleMemory, AnEmptySampleHasAPlaceToo) {
  FakeArena arena(100);
  SampleMemory memory(arena, 0, {});
  const BufferRef empty = memory.AllocateInArena(0);
  ASSERT_NE(empty, nullptr);
  EXPECT_TRUE(empty->bytes().empty());
  EXPECT_EQ(empty->slot()->length, 0U);
}

TEST(SampleMemory, SaysWhenRoomHasBecomeFree) {
  FakeArena arena(100);
  int freed = 0;
  SampleMemory memory(arena, 100, [&] { ++freed; });
  memory.AllocateInArena(10).reset();
  memory.AllocateStaged(10).reset();
  EXPECT_EQ(freed, 2);
  EXPECT_EQ(memory.arena_in_use() + memory.overflow_in_use(), 0U);
}

TEST(SampleMemory, BoundsWhatIsStagedOutsideTheArena) {
  FakeArena arena(100);
  SampleMemory memory(arena, 200, {});
  const BufferRef staged = memory.AllocateStaged(70);
  ASSERT_NE(staged, nullptr);
  EXPECT_FALSE(staged->slot().has_value());
  EXPECT_EQ(memory.AllocateStaged(31), nullptr);
  EXPECT_NE(memory.AllocateStaged(30), nullptr);
}

TEST(SampleMemory, AdmitsWhatFitsBesidesTheOthers) {
  FakeArena arena(100);
  SampleMemory memory(arena, 200, {});
  const BufferRef asked = memory.AllocateAsked(70);
  EXPECT_TRUE(memory.Admits(30));
  EXPECT_FALSE(memory.Admits(31));
}

TEST(SampleMemory, AdmitsSoMuchAloneHoweverSmallTheOverflow) {
  FakeArena arena(100);
  SampleMemory memory(arena, 200, {});
  EXPECT_TRUE(memory.Admits(SampleMemory::kAloneAlways));
  EXPECT_FALSE(memory.Admits(SampleMemory::kAloneAlways + 1));
  const BufferRef asked = memory.AllocateAsked(100'000);
  EXPECT_FALSE(memory.Admits(1));
  EXPECT_TRUE(memory.others_ask());
  EXPECT_EQ(memory.AllocateStaged(1), nullptr);
}

TEST(SampleMemory, ARequestAloneMayHaveTheStagedHalfWhileThatIsFree) {
  FakeArena arena(100);
  SampleMemory memory(arena, 200_MiB, {});
  EXPECT_TRUE(memory.Admits(200_MiB));
  EXPECT_FALSE(memory.Admits(200_MiB + 1));
  BufferRef staged = memory.AllocateStaged(50_MiB);
  EXPECT_TRUE(memory.Admits(150_MiB));
  EXPECT_FALSE(memory.Admits(150_MiB + 1));
  const BufferRef asked = memory.AllocateAsked(150_MiB);
  EXPECT_EQ(memory.AllocateStaged(1), nullptr) << "both together are within the overflow";
}

}  // namespace
}  // namespace optcache::sidecar
