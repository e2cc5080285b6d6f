#include "plan/replay.h"

#include <array>

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

constexpr Decision kKeepAtZero{.holder = kNoNode, .keep_at = 0, .planned_here = false};

TEST(Replay, CountsReadsThatLeaveANodeTooFull) {
  Replay replay(Sizes({2, 2}), {3});
  replay.Read(0, 0, kKeepAtZero, 0);
  EXPECT_EQ(replay.capacity_exceeded(), 0U);
  replay.Read(1, 0, kKeepAtZero, 0);
  EXPECT_EQ(replay.capacity_exceeded(), 1U);
}

TEST(Replay, CountsSamplesThatAreNotWhereThePlanSays) {
  Replay replay(Sizes::Equal(1, 1), {1, 1});
  replay.Read(0, 0, {.holder = 1, .keep_at = 0, .planned_here = false}, 0);
  EXPECT_EQ(replay.misplaced(), 1U);
}

TEST(Replay, EvictingMakesRoom) {
  Replay replay(Sizes::Equal(2, 1), {1}, {0, kNoNode});
  replay.Evict(std::array<SampleId, 1>{0});
  replay.Read(1, 0, kKeepAtZero, 0);
  EXPECT_EQ(replay.capacity_exceeded(), 0U);
  EXPECT_EQ(replay.holders(), (Holders{kNoNode, 0}));
}

TEST(Replay, TellsLocalHitsFromPeerHits) {
  Replay replay(Sizes::Equal(2, 1), {1, 1}, {0, 0});
  replay.Read(0, 0, {.holder = 0, .keep_at = kNoNode, .planned_here = true}, 0);
  replay.Read(1, 1, {.holder = 0, .keep_at = kNoNode, .planned_here = false}, 0);
  EXPECT_EQ(replay.stats().local_hits, 1U);
  EXPECT_EQ(replay.stats().peer_hits, 1U);
}

}  // namespace
}  // namespace optcache::plan
