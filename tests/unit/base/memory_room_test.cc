#include "base/memory_room.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(MemoryRoom, KnowsWhatMemoryThereIs) {
  const MemoryRoom available = AvailableMemory();
  const MemoryRoom total = TotalMemory();
  EXPECT_GT(available.bytes, 1_MiB);
  EXPECT_LE(available.bytes, total.bytes);
  EXPECT_LT(total.bytes, 1ULL << 50U);
  EXPECT_FALSE(available.limited_by.empty());
  EXPECT_FALSE(total.limited_by.empty());
  EXPECT_LE(total.bytes, ControlGroupMemoryLimit().value_or(total.bytes));
}

}  // namespace
}  // namespace optcache
