#include "handoff/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::handoff {
namespace {

using testing::HasSubstr;

TEST(ArenaAllocator, GivesAlignedSlotsFromTheFront) {
  ArenaAllocator allocator(1024);
  EXPECT_EQ(allocator.Allocate(10), (Slot{.offset = 0, .length = 10}));
  EXPECT_EQ(allocator.Allocate(65), (Slot{.offset = 64, .length = 65}));
  EXPECT_EQ(allocator.Allocate(1), (Slot{.offset = 192, .length = 1}));
  EXPECT_EQ(allocator.in_use(), 256U);
  EXPECT_EQ(allocator.slots(), 3U);
}

TEST(ArenaAllocator, TakesTheShortestPieceThatFits) {
  ArenaAllocator allocator(1024);
  const auto first = allocator.Allocate(256);
  const auto wall = allocator.Allocate(64);
  const auto second = allocator.Allocate(128);
  ASSERT_TRUE(first && wall && second && allocator.Allocate(64));
  allocator.Free(*first);
  allocator.Free(*second);
  EXPECT_EQ(allocator.Allocate(128)->offset, second->offset);
}

TEST(ArenaAllocator, JoinsNeighboursOnBothSides) {
  ArenaAllocator allocator(192);
  const auto a = allocator.Allocate(64);
  const auto b = allocator.Allocate(64);
  const auto c = allocator.Allocate(64);
  ASSERT_TRUE(a && b && c);
  allocator.Free(*a);
  allocator.Free(*c);
  EXPECT_EQ(allocator.LongestFree(), 64U);
  allocator.Free(*b);
  EXPECT_EQ(allocator.LongestFree(), 192U);
}

TEST(ArenaAllocator, GivesNothingWhenNoPieceIsLongEnough) {
  ArenaAllocator allocator(128);
  EXPECT_FALSE(allocator.Allocate(129));
  EXPECT_FALSE(allocator.Allocate(~ByteCount{0}));
  EXPECT_TRUE(allocator.Allocate(128));
  EXPECT_FALSE(allocator.Allocate(0));
}

TEST(ArenaAllocator, GivesEmptySlotsAPlaceOfTheirOwn) {
  ArenaAllocator allocator(128);
  const auto a = allocator.Allocate(0);
  const auto b = allocator.Allocate(0);
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->offset, b->offset);
  allocator.Free(*a);
  allocator.Free(*b);
  EXPECT_EQ(allocator.in_use(), 0U);
}

TEST(ArenaAllocatorDeathTest, ChecksThatASlotIsFreedOnce) {
  ArenaAllocator allocator(128);
  const auto slot = allocator.Allocate(5);
  allocator.Free(*slot);
  EXPECT_DEATH(allocator.Free(*slot), "CHECK|Check|check");
}

// The slow obvious allocator: one mark a unit of 64 bytes.
class MarkedUnits {
 public:
  explicit MarkedUnits(std::size_t units) : used_(units, false) {}

  // The offset of the shortest run that fits, the first of those.
  std::optional<ByteCount> Allocate(std::size_t units) {
    std::size_t best = used_.size();
    std::size_t best_length = used_.size() + 1;
    for (std::size_t i = 0; i < used_.size();) {
      std::size_t end = i;
      while (end < used_.size() && !used_[end])
        ++end;
      if (end - i >= units && end - i < best_length) {
        best = i;
        best_length = end - i;
      }
      i = end + 1;
    }
    if (best == used_.size()) return std::nullopt;
    Mark(best, units, true);
    return best * kSlotAlignment;
  }
  void Free(ByteCount offset, std::size_t units) { Mark(offset / kSlotAlignment, units, false); }

 private:
  void Mark(std::size_t begin, std::size_t units, bool used) {
    for (std::size_t i = begin; i < begin + units; ++i) {
      ASSERT_NE(used_[i], used);
      used_[i] = used;
    }
  }
  std::vector<bool> used_;
};

TEST(ArenaAllocator, AgreesWithMarkedUnits) {
  const std::uint64_t seed = TestSeed(4711);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 40; ++round) {
    const std::size_t units = 1 + random.Below(60);
    ArenaAllocator allocator(units * kSlotAlignment + random.Below(kSlotAlignment));
    MarkedUnits oracle(units);
    std::vector<Slot> slots;
    for (int step = 0; step < 400; ++step) {
      if (random.Below(100) < 55 || slots.empty()) {
        const ByteCount length = random.Below(random.Below(12) * kSlotAlignment + 1);
        const auto slot = allocator.Allocate(length);
        const auto expected =
            oracle.Allocate(std::max<ByteCount>(1, (length + kSlotAlignment - 1) / kSlotAlignment));
        ASSERT_EQ(slot.has_value(), expected.has_value());
        if (!slot) continue;
        ASSERT_EQ(slot->offset, *expected);
        slots.push_back(*slot);
      } else {
        const std::size_t at = random.Below(slots.size());
        allocator.Free(slots[at]);
        oracle.Free(slots[at].offset, std::max<ByteCount>(1, (slots[at].length + 63) / 64));
        slots[at] = slots.back();
        slots.pop_back();
      }
      ASSERT_EQ(allocator.slots(), slots.size());
    }
    for (const Slot& slot : slots) {
      allocator.Free(slot);
    }
    EXPECT_EQ(allocator.LongestFree(), units * kSlotAlignment);
  }
}

TEST(Arena, ShowsWhatIsWrittenToWhoMapsItForReading) {
  auto arena = Arena::Create(1_MiB);
  ASSERT_TRUE(arena) << arena.error().ToString();
  const auto slot = arena->Allocate(5);
  ASSERT_TRUE(slot);
  std::memcpy(arena->Bytes(*slot).data(), "bytes", 5);

  void* base = ::mmap(nullptr, arena->size(), PROT_READ, MAP_SHARED, arena->fd(), 0);
  ASSERT_NE(base, MAP_FAILED);
  const auto* text = static_cast<const char*>(base) + slot->offset;
  EXPECT_EQ(std::string_view(text, 5), "bytes");
  EXPECT_NE(::mprotect(base, arena->size(), PROT_READ | PROT_WRITE), 0);
  ::munmap(base, arena->size());
}

TEST(Arena, CanNeitherBeWrittenNorResizedByOthers) {
  auto arena = Arena::Create(1_MiB);
  ASSERT_TRUE(arena);
  EXPECT_EQ(::mmap(nullptr, arena->size(), PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd(), 0),
            MAP_FAILED);
  EXPECT_EQ(::pwrite(arena->fd(), "x", 1, 0), -1);
  EXPECT_NE(::ftruncate(arena->fd(), 0), 0);
  EXPECT_NE(::ftruncate(arena->fd(), 2 << 20), 0);
  EXPECT_NE(::fallocate(arena->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  EXPECT_NE(::fcntl(arena->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);

  const std::string reopened = "/proc/self/fd/" + std::to_string(arena->fd());
  const int fd = ::open(reopened.c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    EXPECT_EQ(::pwrite(fd, "x", 1, 0), -1);
    ::close(fd);
  }
}

TEST(Arena, RefusesASizeThatHoldsNothing) {
  const auto arena = Arena::Create(100);
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code(), Code::kInvalidArgument);
}

TEST(Arena, SaysHowMuchMemoryThereIsWhenItAsksForTooMuch) {
  const auto arena = Arena::Create(1ULL << 50U);
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(arena.error().message(), HasSubstr("are left by"));
}

}  // namespace
}  // namespace optcache::handoff
