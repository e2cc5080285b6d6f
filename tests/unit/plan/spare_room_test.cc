#include "plan/spare_room.h"

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

using Bytes = std::vector<ByteCount>;
using Reads = std::vector<std::uint32_t>;

TEST(SpareRoom, IsWhatANodesOwnReadsDoNotNeedWhereAnotherLacksRoom) {
  const SpareRoom spare = FindSpareRoom(Reads{200, 100}, Bytes{3200, 3200}, 100'000);
  // Node 1 needs 2133, of which 1/32 is shared.
  EXPECT_EQ(spare.bytes, (Bytes{0, 3200 - 2133 + 2133 / 32}));
}

TEST(SpareRoom, IsNoneWhereReadsAreAsEvenAsRoom) {
  EXPECT_TRUE(FindSpareRoom(Reads{100, 100}, Bytes{50, 50}, 1000).bytes.empty());
  EXPECT_TRUE(FindSpareRoom(Reads{100, 200}, Bytes{500, 1000}, 9999).bytes.empty());
  EXPECT_TRUE(FindSpareRoom(Reads{1000, 1001}, Bytes{5000, 5000}, 99'999).bytes.empty());
}

TEST(SpareRoom, IsNoneWhereEachReaderHasRoomForAll) {
  EXPECT_TRUE(FindSpareRoom(Reads{200, 100}, Bytes{1000, 1000}, 1000).bytes.empty());
}

TEST(SpareRoom, IsAllOfANodeThatNoRankReadsThrough) {
  EXPECT_EQ(FindSpareRoom(Reads{200, 0}, Bytes{300, 400}, 1000).bytes, (Bytes{0, 400}));
}

TEST(SpareRoom, IsNoneWhereNothingIsRead) {
  EXPECT_TRUE(FindSpareRoom(Reads{0, 0}, Bytes{300, 400}, 1000).bytes.empty());
}

TEST(SpareRoom, OfAGroupOfNodesIsNotForReadersOfTheOtherGroup) {
  const SpareRoom even = FindSpareRoom(Reads{100, 100, 100}, Bytes{300, 0, 300}, 1000);
  EXPECT_TRUE(even.bytes.empty());
  const SpareRoom uneven = FindSpareRoom(Reads{200, 100, 100}, Bytes{300, 0, 300}, 10'000);
  EXPECT_GT(uneven.bytes.at(2), 0U);
  EXPECT_EQ(uneven.used_by, (std::vector<bool>{true, false, true}));
}

TEST(SpareRoom, OfANodeThatNoRankReadsThroughIsForReadersWithoutCapacity) {
  const SpareRoom spare = FindSpareRoom(Reads{100, 0}, Bytes{0, 300}, 1000);
  EXPECT_EQ(spare.bytes, (Bytes{0, 300}));
  EXPECT_EQ(spare.used_by, (std::vector<bool>{true, true}));
}

TEST(NodeRoom, IsTakenAtTheFirstWantedNodeThatHasAsMuchElseInTurn) {
  NodeRoom room(4);
  room.Set(0, 0, 0);
  room.Set(1, 5, 5);
  room.Set(2, 5, 1);
  room.Set(3, 3, 0);
  EXPECT_EQ(room.total(), 7U);
  EXPECT_EQ(room.TakeAny({kNoNode, 1, 3}, 2), 3U);
  EXPECT_EQ(room.TakeAny({0, 1, 3}, 2), 2U);
  EXPECT_EQ(room.TakeAny({0, kNoNode, kNoNode}, 3), kNoNode);
  room.Free(1, 3);
  EXPECT_EQ(room.TakeAny({0, kNoNode, kNoNode}, 3), 1U);
  EXPECT_EQ(room.TakeAny({0, 1, 3}, 1), 3U);
  EXPECT_FALSE(room.Take(3, 1));
  EXPECT_EQ(room.total(), 2U);
}

}  // namespace
}  // namespace optcache::plan
