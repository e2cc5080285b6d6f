#include "sidecar/computed/computed_cache.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulation/policies/policy.h"
#include "support/seeds.h"
#include "unit/sidecar/computed_world.h"

namespace optcache::sidecar {
namespace {

using testing::HasSubstr;

constexpr ClientId kAsker = 1;
constexpr ByteCount kValueBytes = 64;

class ComputedCacheTest : public testing::Test {
 protected:
  ComputedRequest Of(SampleId id) const { return {.request = 1, .dataset = handle_, .id = id}; }

  ComputedWorld world_{10 * kValueBytes};
  ComputedHandle handle_ = world_.Open(kAsker, 100);
};

TEST_F(ComputedCacheTest, WhatWasComputedIsRead) {
  EXPECT_FALSE(world_.Read(kAsker, Of(7), kValueBytes));
  EXPECT_TRUE(world_.Read(kAsker, Of(7), kValueBytes));
  const auto counts = world_.desk.CountsOf(kAsker, handle_).value();
  EXPECT_EQ(counts.hits, 1U);
  EXPECT_EQ(counts.misses, 1U);
  EXPECT_EQ(counts.values, 1U);
  EXPECT_EQ(counts.bytes, kValueBytes);
}

TEST_F(ComputedCacheTest, OneComputesAndTheOtherWaits) {
  world_.Open(2, 100);
  const auto first = world_.Ask(kAsker, Of(7));
  EXPECT_FALSE(world_.Ask(2, Of(7)));
  EXPECT_TRUE(world_.desk.Waits(2, 1));
  world_.Put(kAsker, first->lease, 7, kValueBytes);
  const auto second = world_.Answer(2);
  ASSERT_TRUE(second && second->value);
  EXPECT_TRUE(world_.Holds(*second->value, 7));
  EXPECT_FALSE(world_.desk.Waits(2, 1));
}

TEST_F(ComputedCacheTest, AProcessThatDiesLeavesItToTheNextInLine) {
  for (const ClientId client : {ClientId{2}, ClientId{3}})
    world_.Open(client, 100);
  const auto first = world_.Ask(kAsker, Of(7));
  EXPECT_FALSE(world_.Ask(2, Of(7)));
  EXPECT_FALSE(world_.Ask(3, Of(7)));
  std::vector<std::byte> half(kValueBytes / 2);
  world_.desk.Put(kAsker, first->lease, kValueBytes, 0, half);
  world_.desk.OnClientGone(kAsker);
  const auto second = world_.Answer(2);
  ASSERT_TRUE(second && second->lease != 0);
  EXPECT_EQ(world_.arena.slots(), 0U) << "what had come of the value is gone";
  EXPECT_FALSE(world_.Answer(3)) << "one computes at a time";
  world_.Put(2, second->lease, 7, kValueBytes);
  EXPECT_TRUE(world_.Answer(3)->value);
}

TEST_F(ComputedCacheTest, WhoHasWaitedForLongComputesItself) {
  world_.Open(2, 100);
  const auto slow = world_.Ask(kAsker, Of(7));
  EXPECT_FALSE(world_.Ask(2, Of(7)));
  world_.Advance(ComputedCache::kWaitMax - Duration(1));
  EXPECT_FALSE(world_.Answer(2));
  world_.Advance(Duration(1));
  const auto second = world_.Answer(2);
  ASSERT_TRUE(second && second->lease != 0);
  world_.Put(kAsker, slow->lease, 8, kValueBytes);  // too late: nobody sees it
  world_.Put(2, second->lease, 7, kValueBytes);
  EXPECT_TRUE(world_.Read(2, Of(7), kValueBytes));
}

TEST_F(ComputedCacheTest, AValueIsSeenWhenAllOfItHasCome) {
  const auto answer = world_.Ask(kAsker, Of(7));
  std::vector<std::byte> bytes(kValueBytes);
  FillSample(7, bytes);
  world_.desk.Put(kAsker, answer->lease, kValueBytes, 0, ByteSpan(bytes).first(10));
  EXPECT_EQ(world_.desk.CountsOf(kAsker, handle_)->values, 0U);
  world_.desk.Put(kAsker, answer->lease, kValueBytes, 10, ByteSpan(bytes).subspan(10));
  EXPECT_TRUE(world_.Read(kAsker, Of(7), kValueBytes));
}

TEST_F(ComputedCacheTest, PartsThatDoNotFitTogetherEndTheLease) {
  const std::vector<std::byte> bytes(kValueBytes);
  const auto put = [&](ByteCount length, ByteCount offset, std::size_t part) {
    const auto answer = world_.Ask(kAsker, Of(7));
    ASSERT_NE(answer->lease, 0U);
    world_.desk.Put(kAsker, answer->lease, kValueBytes, 0, ByteSpan(bytes).first(8));
    world_.desk.Put(kAsker, answer->lease, length, offset, ByteSpan(bytes).first(part));
    EXPECT_EQ(world_.arena.slots(), 0U);
  };
  put(kValueBytes, 16, 8);
  put(kValueBytes, 0, 8);
  put(kValueBytes + 1, 8, 8);
  put(kValueBytes, 8, kValueBytes);
  put(kValueBytes, 8, 0);
  put(0, 0, 0);
}

TEST_F(ComputedCacheTest, WhatIsLargerThanTheRoomPassesThrough) {
  const auto answer = world_.Ask(kAsker, Of(7));
  EXPECT_EQ(answer->room, 10 * kValueBytes);
  world_.Put(kAsker, answer->lease, 7, 11 * kValueBytes);
  EXPECT_FALSE(world_.Read(kAsker, Of(7), kValueBytes)) << "the lease was over";
  EXPECT_TRUE(world_.Read(kAsker, Of(7), kValueBytes));
}

TEST_F(ComputedCacheTest, AnotherMeaningOfANameIsRefusedWhileItIsInUse) {
  const auto other = world_.desk.Open(2, "train", "cats", 100, kValueBytes);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code(), Code::kConflict);
  EXPECT_THAT(other.error().message(), HasSubstr("100 of faces"));
  EXPECT_EQ(world_.desk.Open(2, "train", "faces", 99, kValueBytes).error().code(), Code::kConflict);
  world_.desk.OnClientGone(kAsker);
  EXPECT_TRUE(world_.desk.Open(2, "train", "cats", 100, kValueBytes)->first);
}

TEST_F(ComputedCacheTest, DatasetsDivideTheMemory) {
  const auto full = world_.desk.Open(2, "validation", "faces", 10, kValueBytes);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(world_.desk.Open(2, "", "faces", 10, kValueBytes).has_value());
  EXPECT_FALSE(world_.desk.Open(2, "none", "faces", 0, kValueBytes).has_value());
}

TEST_F(ComputedCacheTest, ValuesStayForAMomentWhenWorkersHaveGone) {
  world_.Read(kAsker, Of(7), kValueBytes);
  world_.desk.OnClientGone(kAsker);
  world_.Advance(ComputedCache::kLinger - Duration(1));
  const auto again = world_.desk.Open(2, "train", "faces", 100, kValueBytes);
  EXPECT_TRUE(again->first);
  EXPECT_TRUE(world_.Read(2, Of(7), kValueBytes));
  world_.desk.OnClientGone(2);
  world_.Advance(ComputedCache::kLinger);
  EXPECT_EQ(world_.arena.slots(), 0U);
  world_.Open(3, 100);
  EXPECT_FALSE(world_.Read(3, Of(7), kValueBytes));
}

TEST_F(ComputedCacheTest, AHandleIsGoodForWhoHasOpenedIt) {
  const auto answer = world_.Ask(2, Of(7));
  EXPECT_EQ(answer->status.code(), Code::kInvalidArgument);
  EXPECT_EQ(world_.Ask(kAsker, Of(100))->status.code(), Code::kInvalidArgument);
  EXPECT_FALSE(world_.desk.CountsOf(2, handle_).has_value());
  EXPECT_FALSE(world_.desk.Dataset(kAsker, 1).has_value());
}

TEST_F(ComputedCacheTest, OneClientHoldsSoManyLeasesAndNoMore) {
  for (SampleId id = 0; id < ComputedCache::kLeasesMax; ++id)
    EXPECT_TRUE(world_.Ask(kAsker, Of(id))->status.ok());
  EXPECT_EQ(world_.Ask(kAsker, Of(99))->status.code(), Code::kResourceExhausted);
}

TEST_F(ComputedCacheTest, WhatIsNotKnownIsKeptUntilThereIsNoRoom) {
  for (SampleId id = 0; id < 20; ++id)
    world_.Read(kAsker, Of(id), kValueBytes);
  for (SampleId id = 0; id < 20; ++id)
    EXPECT_EQ(world_.Read(kAsker, Of(id), kValueBytes), id < 10);
}

// --- What stays, against slow and obvious oracles -----------------------------------------------

// A permutation a pass: no cache of C finds more than C in a pass, and this one finds C.
TEST(ComputedPlan, ReadsThatShuffleFindAsManyAsAnyCacheCan) {
  constexpr SampleId kReadable = 200;
  constexpr std::uint64_t kRoomFor = 60;
  ComputedWorld world(kRoomFor * kValueBytes);
  const ComputedHandle handle = world.Open(kAsker, kReadable);
  const StreamId stream = world.Attach(kAsker, handle, Shuffled(kReadable, 5));
  for (PassNumber pass = 0; pass < 5; ++pass) {
    world.Begin(stream, 0, pass, kReadable);
    const std::vector<SampleId> ids = world.Ids(stream, 0);
    std::array<std::uint64_t, 4> by_quarter{};
    for (std::uint64_t i = 0; i < ids.size(); ++i) {
      const ComputedRequest read{
          .dataset = handle, .stream = stream, .pass = pass, .index = i, .id = ids[i]};
      by_quarter.at(i * 4 / kReadable) += world.Read(kAsker, read, kValueBytes) ? 1U : 0U;
    }
    if (pass == 0) continue;
    EXPECT_EQ(by_quarter[0] + by_quarter[1] + by_quarter[2] + by_quarter[3], kRoomFor);
    for (const std::uint64_t hits : by_quarter)
      EXPECT_NEAR(static_cast<double>(hits), kRoomFor / 4.0, 8) << "evenly over the pass";
  }
  EXPECT_EQ(world.desk.CountsOf(kAsker, handle)->evictions, 0U);
}

// The ranks of one machine share what is kept.
TEST(ComputedPlan, RanksOfOneStreamFindAsManyAsOneWould) {
  constexpr SampleId kReadable = 120;
  constexpr std::uint32_t kWorld = 3;
  constexpr std::uint64_t kRoomFor = 50;
  ComputedWorld world(kRoomFor * kValueBytes);
  StreamId stream = 0;
  ComputedHandle handle = 0;
  for (Rank rank = 0; rank < kWorld; ++rank) {
    handle = world.Open(rank + 1, kReadable);
    stream = world.Attach(rank + 1, handle, Shuffled(kReadable, 5, kWorld, rank));
  }
  for (PassNumber pass = 0; pass < 4; ++pass) {
    std::uint64_t hits = 0;
    for (Rank rank = 0; rank < kWorld; ++rank)
      world.Begin(stream, rank, pass, kReadable / kWorld);
    for (std::uint64_t i = 0; i < kReadable / kWorld; ++i) {
      for (Rank rank = 0; rank < kWorld; ++rank) {
        const ComputedRequest read{.dataset = handle,
                                   .stream = stream,
                                   .rank = rank,
                                   .pass = pass,
                                   .index = i,
                                   .id = world.Ids(stream, rank)[i]};
        hits += world.Read(rank + 1, read, kValueBytes) ? 1U : 0U;
      }
    }
    EXPECT_EQ(hits, pass == 0 ? 0 : kRoomFor);
  }
}

// What MIN with bypass keeps, by looking through all that is known at each read.
class SlowMin {
 public:
  SlowMin(std::vector<std::vector<SampleId>> passes, std::size_t values)
      : passes_(std::move(passes)), values_(values) {}

  bool Read(std::size_t pass, std::size_t index) {
    const SampleId id = passes_[pass][index];
    if (kept_.contains(id)) return true;
    const std::size_t next = NextUse(id, pass, index);
    if (kept_.size() < values_) {
      kept_.insert(id);
    } else if (next != kNever) {
      const auto last = std::ranges::max_element(
          kept_, {}, [&](SampleId kept) { return std::pair(NextUse(kept, pass, index), kept); });
      if (NextUse(*last, pass, index) > next) {
        kept_.erase(last);
        kept_.insert(id);
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t kNever = ~std::size_t{0};

  // Reads until then; what comes after the next pass is not known.
  std::size_t NextUse(SampleId id, std::size_t pass, std::size_t index) const {
    std::vector<SampleId> known(passes_[pass].begin() + static_cast<std::ptrdiff_t>(index) + 1,
                                passes_[pass].end());
    if (pass + 1 < passes_.size()) {
      known.insert(known.end(), passes_[pass + 1].begin(), passes_[pass + 1].end());
    }
    const auto found = std::ranges::find(known, id);
    return found == known.end() ? kNever : static_cast<std::size_t>(found - known.begin());
  }

  std::vector<std::vector<SampleId>> passes_;
  std::size_t values_;
  std::set<SampleId> kept_;
};

// Samples are drawn with replacement: each read is compared.
TEST(ComputedPlan, ReadsWithRepeatsFindWhatMinKeeps) {
  constexpr SampleId kReadable = 40;
  constexpr std::size_t kRoomFor = 9;
  constexpr PassNumber kPasses = 4;
  for (std::uint64_t seed = TestSeed(1), end = seed + 20; seed < end; ++seed) {
    SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
    Random random(seed);
    std::vector<std::vector<SampleId>> passes(kPasses);
    for (auto& pass : passes) {
      for (int i = 0; i < 70; ++i)
        pass.push_back(static_cast<SampleId>(random.Below(kReadable)));
    }
    SlowMin oracle(passes, kRoomFor);
    ComputedWorld world(kRoomFor * kValueBytes);
    const ComputedHandle handle = world.Open(kAsker, kReadable);
    AttachRequest attach = Shuffled(kReadable, 1);
    attach.known = false;
    attach.traced = true;
    const StreamId stream = world.Attach(kAsker, handle, attach);
    ReaderTable& readers = world.desk.readers();
    const ReaderId reader = readers.Find(stream, 0);
    for (PassNumber pass = 0; pass < kPasses; ++pass) {
      for (PassNumber told = pass; told < std::min(pass + 2, kPasses); ++told) {
        if (told == pass && pass > 0) continue;  // was told before
        ASSERT_TRUE(readers.TakeTrace(reader, told, 0, passes[told].size(), passes[told]).ok());
      }
      world.Begin(stream, 0, pass, passes[pass].size());
      for (std::size_t i = 0; i < passes[pass].size(); ++i) {
        const ComputedRequest read{
            .dataset = handle, .stream = stream, .pass = pass, .index = i, .id = passes[pass][i]};
        ASSERT_EQ(world.Read(kAsker, read, kValueBytes), oracle.Read(pass, i))
            << "pass " << pass << " index " << i;
        world.Advance(std::chrono::milliseconds(1));
      }
    }
  }
}

// Two jobs that shuffle: close to what MIN finds that knows the interleaving to the end.
TEST(ComputedPlan, TwoJobsFindNearlyWhatMinDoes) {
  constexpr SampleId kReadable = 200;
  constexpr std::uint64_t kRoomFor = 60;
  constexpr PassNumber kPasses = 6;
  ComputedWorld world(kRoomFor * kValueBytes);
  const ComputedHandle handle = world.Open(kAsker, kReadable);
  std::array<StreamId, 2> streams{};
  for (std::size_t job = 0; job < 2; ++job) {
    streams.at(job) =
        world.Attach(kAsker, handle, Shuffled(kReadable, static_cast<std::int64_t>(job)));
  }
  std::vector<SampleId> reads;
  std::uint64_t hits = 0;
  for (PassNumber pass = 0; pass < kPasses; ++pass) {
    for (const StreamId stream : streams)
      world.Begin(stream, 0, pass, kReadable);
    for (std::uint64_t i = 0; i < kReadable; ++i) {
      for (const StreamId stream : streams) {
        const SampleId id = world.Ids(stream, 0)[i];
        reads.push_back(id);
        const ComputedRequest read{
            .dataset = handle, .stream = stream, .pass = pass, .index = i, .id = id};
        hits += world.Read(kAsker, read, kValueBytes) ? 1U : 0U;
      }
      world.Advance(std::chrono::milliseconds(2));
    }
  }
  const plan::Future future = plan::FutureOf(reads, kReadable);
  const auto min = plan::MakeMin(
      {.sizes = plan::Sizes::Equal(kReadable, kValueBytes), .capacity = kRoomFor * kValueBytes},
      future);
  std::uint64_t best = 0;
  for (const SampleId id : reads)
    best += min->Read(id) ? 1U : 0U;
  EXPECT_LE(hits, best);
  EXPECT_GE(static_cast<double>(hits), 0.98 * static_cast<double>(best)) << hits << " of " << best;
}

}  // namespace
}  // namespace optcache::sidecar
