// A dataset's cache with a disk: what it spills, what it reads back, and what becomes of both when
// the disk is slow, full, wrong or broken.

#include <memory>

#include <gmock/gmock.h>

#include "cache-node/serving/dataset_cache.h"
#include "cache/disk_tier.h"
#include "support/fake_segment_io.h"
#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Answer;
using wire::GetMode;

constexpr StreamId kDiskStream = 42;
constexpr std::uint32_t kSize = 100;
constexpr ByteCount kMemory = 1000;
constexpr std::uint32_t kSamples = 100;
constexpr SampleId kLarge = 99;
constexpr std::uint32_t kLargeSize = 1100;

std::vector<std::uint32_t> SampleSizes() {
  std::vector<std::uint32_t> sizes(kSamples, kSize);
  sizes[kLarge] = kLargeSize;
  return sizes;
}

// Node 0 has a disk, the others have not.
struct DiskCacheTest : testing::Test {
  explicit DiskCacheTest(std::size_t nodes = 1) : cluster(Options(nodes)) {}

  LoopbackCluster::Options Options(std::size_t nodes) {
    return {.nodes = nodes,
            .sizes = SampleSizes(),
            .plans = &plan_lookup,
            .make = [this](wire::MemberId self, Effects& effects) -> DatasetCache& {
              return Make(self, effects);
            }};
  }
  DatasetCache& Make(wire::MemberId self, Effects& effects) {
    const ByteCount on_disk = self == 1 ? 5000 : 0;
    caches.push_back(
        std::make_unique<DatasetCache>(DatasetConfig{.self = self,
                                                     .retention = Retention::kOptimal,
                                                     .capacity = kMemory + on_disk,
                                                     .disk = on_disk,
                                                     .reserve = 300,
                                                     .sizes = plan::Sizes(SampleSizes())},
                                       ReadDeadlines{}, plan_lookup, effects));
    if (on_disk > 0) caches.back()->UseDisk(tier, disk, MonotonicTime{});
    return *caches.back();
  }

  DatasetCache& cache() { return cluster.cache(0); }
  void Keep(PassNumber pass, Position position, wire::MemberId where = 1) {
    plan_lookup.plan_lookup[{kDiskStream, pass, position}] = {.keep = true, .keep_at = where};
  }
  // Reads samples [first, last) from the store, each kept here.
  void Fill(SampleId first, SampleId last) {
    for (SampleId id = first; id < last; ++id) {
      Keep(0, id);
      const wire::SampleReply reply = cluster.Get(0, kDiskStream, {0, id, id});
      ASSERT_EQ(reply.answer, Answer::kMissKeep) << id;
      ASSERT_TRUE(cluster.Put(0, kDiskStream, {0, id, id}, reply.lease)) << id;
      End();
    }
  }
  void End() {
    cluster.Advance(milliseconds(100));
    cluster.Settle();
    io.EndAll();
    cluster.Settle();
    io.EndAll();
  }
  wire::SampleReply Read(SampleId id, PassNumber pass, GetMode mode = GetMode::kStage) {
    cluster.replies(0).clear();
    cluster.Ask(0, kDiskStream, {{pass, id, id}}, mode);
    End();
    if (cluster.replies(0).empty()) return {.index = 999};
    payload = cluster.replies(0).front().payload;
    return std::get<wire::SampleReply>(cluster.replies(0).front().message);
  }
  SampleId OneOnDisk() {
    const auto& on_disk = cache().tier().on_disk_entries();
    if (!on_disk.empty()) return on_disk.begin()->first;
    ADD_FAILURE() << "nothing lies on the disk";
    return 0;
  }

  FakeSegmentIo io;
  cache::DiskState disk{1_MiB};
  std::shared_ptr<cache::DiskTier> tier = std::make_shared<cache::DiskTier>(7, io, disk);
  ScriptedPlanLookup plan_lookup;
  std::vector<std::unique_ptr<DatasetCache>> caches;
  LoopbackCluster cluster;
  std::string payload;
};

TEST_F(DiskCacheTest, WhatMemoryHasNoRoomForGoesToTheDisk) {
  Fill(0, 40);
  const cache::MemoryTier& held = cache().tier();
  EXPECT_EQ(held.samples(), 40U);
  EXPECT_LE(held.in_memory(), kMemory);
  EXPECT_EQ(held.on_disk(), tier->payload_bytes());
  EXPECT_EQ(held.in_memory() + held.on_disk(), 4000U);
  EXPECT_EQ(cache().counters().puts_refused, 0U);
}

TEST_F(DiskCacheTest, ItIsReadBackAndStaysWhereItIs) {
  Fill(0, 40);
  const SampleId id = OneOnDisk();
  const ByteCount in_memory = cache().tier().in_memory();
  Keep(1, id);
  EXPECT_EQ(Read(id, 1).answer, Answer::kHere);
  EXPECT_EQ(payload, BytesOf(id, kSize));
  EXPECT_EQ(cache().counters().hits_disk, 1U);
  EXPECT_EQ(cache().counters().hits_local, 1U);
  EXPECT_TRUE(cache().tier().Find(id)->on_disk);
  EXPECT_EQ(cache().tier().Find(id)->bytes, nullptr);
  EXPECT_EQ(cache().tier().in_memory(), in_memory);
  EXPECT_EQ(cache().disk_read_bytes(), 0U);  // sent on
  EXPECT_EQ(disk.counters().segments, io.writes);
}

TEST_F(DiskCacheTest, WhatThePlanGivesUpGoesFromTheDiskOnceItsRoomIsNeeded) {
  Fill(0, 55);
  const SampleId id = OneOnDisk();
  plan_lookup.plan_lookup[{kDiskStream, 1, id}] = {};
  EXPECT_EQ(Read(id, 1).answer, Answer::kHere);
  EXPECT_TRUE(tier->Contains(id));
  EXPECT_EQ(Read(id, 1).answer, Answer::kHere);
  Fill(60, 66);
  EXPECT_EQ(cache().tier().Find(id), nullptr);
  EXPECT_FALSE(tier->Contains(id));
  EXPECT_EQ(cache().counters().puts_refused, 0U);
}

TEST_F(DiskCacheTest, WhatIsUsedSoonestStaysInMemory) {
  std::vector<SampleId> order(kSamples);
  for (SampleId id = 0; id < kSamples; ++id)
    order[id] = kSamples - 1 - id;
  cache().uses().Add(kDiskStream, 1, kSamples, FirstPositions(order, kSamples));
  Fill(0, 40);
  SampleId farthest = kSamples;  // of those in memory: the least id
  SampleId soonest = 0;          // of those on disk: the largest id
  for (const auto& [id, _] : cache().tier().on_disk_entries())
    soonest = std::max(soonest, id);
  for (const auto& [id, _] : cache().tier().in_memory_entries())
    farthest = std::min(farthest, id);
  EXPECT_LT(soonest, farthest);
  for (const auto& [_, file] : io.files) {
    EXPECT_TRUE(std::ranges::is_sorted(file.content.records, std::ranges::greater(),
                                       &cache::SegmentRecord::id));  // the soonest use first
  }
}

TEST_F(DiskCacheTest, APrefetcherIsToldToReadTheStoreOnceMemoryHasRoom) {
  std::map<SampleId, wire::LeaseId> leases;
  const auto ask = [&](SampleId id, GetMode mode = GetMode::kStage) {
    Keep(0, id);
    const wire::SampleReply reply = cluster.Get(0, kDiskStream, {0, id, id}, mode);
    leases[id] = reply.lease;
    return reply.answer;
  };
  for (SampleId id = 0; id < 13; ++id)
    EXPECT_EQ(ask(id), Answer::kMissKeep) << id;
  EXPECT_EQ(ask(13), Answer::kOnItsWay) << "the others were told of the room";
  EXPECT_EQ(ask(14, GetMode::kUrgent), Answer::kMissKeep) << "a trainer does not wait for a disk";
  for (SampleId id = 0; id < 13; ++id)
    EXPECT_TRUE(cluster.Put(0, kDiskStream, {0, id, id}, leases[id]));
  EXPECT_EQ(ask(13), Answer::kOnItsWay);
  cluster.UpdateLease(0, LoopbackCluster::kSidecar, wire::LeaseEvent::kFailed, 14, leases[14]);
  End();
  EXPECT_EQ(ask(13), Answer::kMissKeep);
  EXPECT_TRUE(cluster.Put(0, kDiskStream, {0, 13, 13}));
}

TEST_F(DiskCacheTest, APrefetcherDoesNotWaitLongForADisk) {
  for (SampleId id = 0; id < 20; ++id)
    Keep(0, id);
  for (SampleId id = 0; id < 13; ++id) {
    const wire::LeaseId lease = cluster.Get(0, kDiskStream, {0, id, id}).lease;
    EXPECT_TRUE(cluster.Put(0, kDiskStream, {0, id, id}, lease));
  }
  EXPECT_EQ(cluster.Get(0, kDiskStream, {0, 13, 13}).answer, Answer::kOnItsWay);
  cluster.Advance(seconds(1));
  EXPECT_EQ(cluster.Get(0, kDiskStream, {0, 13, 13}).answer, Answer::kMissKeep);
}

TEST_F(DiskCacheTest, ALargeSampleFindsRoomToo) {
  Fill(0, 30);
  Keep(0, kLarge);
  ASSERT_GT(cache().tier().in_memory() + kLargeSize, kMemory + 300) << "or it says nothing";
  Answer answer = Answer::kOnItsWay;
  for (int i = 0; i < 20 && answer == Answer::kOnItsWay; ++i) {
    answer = cluster.Get(0, kDiskStream, {0, kLarge, kLarge}).answer;
    End();
  }
  EXPECT_EQ(answer, Answer::kMissKeep);
  EXPECT_TRUE(cluster.Put(0, kDiskStream, {0, kLarge, kLarge}));
  EXPECT_EQ(cache().counters().puts_refused, 0U);
}

TEST_F(DiskCacheTest, SeveralWhoAskReadItOnce) {
  Fill(0, 40);
  const SampleId id = OneOnDisk();
  const std::size_t before = io.reads;
  cluster.replies(0).clear();
  cluster.Ask(0, kDiskStream, {{1, id, id}, {1, id, id}});
  cluster.Ask(0, kDiskStream, {{1, id, id}}, GetMode::kUrgent);
  End();
  EXPECT_EQ(io.reads, before + 1);
  ASSERT_EQ(cluster.replies(0).size(), 3U);
  for (const auto& reply : cluster.replies(0))
    EXPECT_EQ(reply.payload, BytesOf(id, kSize));
}

TEST_F(DiskCacheTest, ASampleThatWasSpoiltIsAMissAndReadAgain) {
  Fill(0, 40);
  const SampleId id = OneOnDisk();
  io.flips_bits = true;
  Keep(1, id);
  const auto reply = Read(id, 1, GetMode::kUrgent);
  io.flips_bits = false;
  EXPECT_EQ(reply.answer, Answer::kMissKeep);
  EXPECT_EQ(cache().tier().Find(id), nullptr);
  EXPECT_EQ(cache().counters().dropped_by_disk, 1U);
  EXPECT_TRUE(cluster.Put(0, kDiskStream, {1, id, id}, reply.lease));
  EXPECT_EQ(Read(id, 1).answer, Answer::kHere);
}

TEST_F(DiskCacheTest, ADiskThatDoesNotAnswerIsAMiss) {
  Fill(0, 40);
  const SampleId id = OneOnDisk();
  cluster.replies(0).clear();
  cluster.Ask(0, kDiskStream, {{1, id, id}}, GetMode::kUrgent);
  cluster.Advance(seconds(3));
  cluster.Settle();
  ASSERT_EQ(cluster.replies(0).size(), 1U);
  EXPECT_NE(std::get<wire::SampleReply>(cluster.replies(0).front().message).answer, Answer::kHere);
  EXPECT_EQ(disk.counters().read_errors, 1U);
  io.EndAll();  // it comes after all
  cluster.Settle();
  EXPECT_EQ(cluster.replies(0).size(), 1U);
  EXPECT_EQ(Read(id, 1).answer, Answer::kHere);
}

TEST_F(DiskCacheTest, ABrokenDiskIsTakenOutOfUseAndServingGoesOn) {
  Fill(0, 40);
  io.read_status = Status(Code::kInternal, "input/output error");
  for (int i = 0; i < 20 && cache().tier().samples_on_disk() > 0; ++i)
    EXPECT_NE(Read(OneOnDisk(), 1).answer, Answer::kHere);
  EXPECT_TRUE(disk.out_of_use());
  EXPECT_EQ(cache().tier().samples_on_disk(), 0U);
  const SampleId in_memory = cache().tier().in_memory_entries().begin()->first;
  EXPECT_EQ(Read(in_memory, 1).answer, Answer::kHere);
}

TEST_F(DiskCacheTest, AFullDiskEndsAdmissionOnly) {
  Fill(0, 5);
  io.next_write = Status(Code::kResourceExhausted, "no space left on device");
  for (SampleId id = 8; id < 30; ++id) {
    Keep(0, id);
    if (cluster.Get(0, kDiskStream, {0, id, id}).answer == Answer::kMissKeep)
      cluster.Put(0, kDiskStream, {0, id, id});
    End();
  }
  EXPECT_EQ(cache().tier().on_disk(), 0U);
  EXPECT_LE(cache().tier().used(), kMemory + 300);
  EXPECT_GT(cache().counters().puts_refused, 0U);
  EXPECT_EQ(Read(3, 1).answer, Answer::kHere);
  cluster.Advance(seconds(61));  // somebody has made room
  End();
  EXPECT_GT(cache().tier().on_disk(), 0U);
}

TEST_F(DiskCacheTest, WhatGoesWhileItIsWrittenIsNotKeptOnDisk) {
  Fill(0, 5);
  Keep(0, 5);
  cluster.Get(0, kDiskStream, {0, 5, 5});
  cluster.Put(0, kDiskStream, {0, 5, 5});
  cluster.Advance(milliseconds(100));
  cluster.Settle();
  ASSERT_EQ(io.pending(), 1U);
  for (SampleId id = 0; id < 6; ++id) {
    plan_lookup.plan_lookup[{kDiskStream, 1, id}] = {};
    EXPECT_EQ(cluster.Get(0, kDiskStream, {1, id, id}).answer, Answer::kHere);
  }
  End();
  EXPECT_EQ(tier->samples(), 0U);
  EXPECT_EQ(disk.used(), 0U);
  EXPECT_EQ(cache().tier().on_disk(), 0U);
  EXPECT_EQ(cache().tier().used(), cache().retention_manager().spare_bytes());
}

TEST_F(DiskCacheTest, ALifeThatBeginsFindsWhatLiesThere) {
  Fill(0, 40);
  const std::size_t there = tier->samples();
  struct Nobody final : Effects {
    std::uint32_t NewRequestId() override { return 1; }
    bool Reply(ClientId, std::uint32_t, const wire::Message&, const cache::SampleRef&) override {
      return true;
    }
    bool Send(wire::MemberId, std::uint32_t, const wire::Message&,
              const cache::SampleRef&) override {
      return false;
    }
  } effects;
  // Of a manifest in which the largest ids do not exist any more.
  DatasetCache next(DatasetConfig{.self = 9,
                                  .retention = Retention::kOptimal,
                                  .sizes = plan::Sizes(std::vector<std::uint32_t>(20, kSize))},
                    ReadDeadlines{}, plan_lookup, effects);
  next.UseDisk(tier, disk, cluster.now());
  EXPECT_EQ(next.tier().samples(), tier->samples());
  EXPECT_LT(tier->samples(), there);
  for (const auto& [id, entry] : next.tier().on_disk_entries()) {
    EXPECT_LT(id, 20U);
    EXPECT_EQ(entry.crc, Crc32c(AsBytes(BytesOf(id, kSize))));
    EXPECT_EQ(entry.kept_after.stream, kDiskStream);
  }
  EXPECT_EQ(next.retention_manager().Inventory().size(), tier->samples());
  next.LeaveDisk();
  next.Tick(cluster.now());
  EXPECT_EQ(tier->samples(), 0U);
}

struct TwoNodesOneDisk : DiskCacheTest {
  TwoNodesOneDisk() : DiskCacheTest(2) {}
};

TEST_F(TwoNodesOneDisk, APeerReadsFromTheDisk) {
  Fill(0, 40);
  const SampleId id = OneOnDisk();
  plan_lookup.plan_lookup[{kDiskStream, 1, id}] = {};
  cluster.replies(1).clear();
  cluster.Ask(1, kDiskStream, {{1, id, id}}, GetMode::kUrgent);
  for (int i = 0; i < 5; ++i)
    End();
  ASSERT_EQ(cluster.replies(1).size(), 1U);
  EXPECT_EQ(std::get<wire::SampleReply>(cluster.replies(1).front().message).answer, Answer::kPeer);
  EXPECT_EQ(cluster.replies(1).front().payload, BytesOf(id, kSize));
  EXPECT_GT(cache().retention_manager().spare_bytes(), 0U);  // the plan gives it up after that read
}

TEST_F(TwoNodesOneDisk, WhatLiesOnDiskIsPushedToItsNextReader) {
  Fill(0, 40);
  const SampleId id = OneOnDisk();
  Keep(1, id, 2);
  EXPECT_EQ(Read(id, 1).answer, Answer::kHere);
  for (int i = 0; i < 5; ++i)
    End();
  EXPECT_EQ(cache().tier().Find(id), nullptr);
  ASSERT_NE(cluster.cache(1).tier().Find(id), nullptr);
  EXPECT_EQ(AsText(cluster.cache(1).tier().Find(id)->bytes->bytes()), BytesOf(id, kSize));
  EXPECT_FALSE(tier->Contains(id));
}

TEST_F(TwoNodesOneDisk, WhatWaitsForItsReceiverDoesNotFillMemory) {
  for (SampleId id = 0; id < 40; ++id) {
    Keep(0, id, 2);
    const wire::SampleReply reply = cluster.Get(0, kDiskStream, {0, id, id});
    ASSERT_EQ(reply.answer, Answer::kMissKeep) << id;
    ASSERT_TRUE(cluster.Put(0, kDiskStream, {0, id, id}, reply.lease)) << id;
    End();
  }
  EXPECT_EQ(cluster.cache(1).tier().samples(), 13U);  // as many as it has room for
  EXPECT_EQ(cache().tier().samples(), 27U);
  EXPECT_LE(cache().tier().in_memory(), kMemory);
  EXPECT_GT(tier->samples(), 0U);
  cluster.cache(1).SetBudget(Retention::kOptimal, 6000, 300);
  for (int i = 0; i < 50; ++i)
    End();
  EXPECT_EQ(cluster.cache(1).tier().samples(), 40U);
  EXPECT_EQ(cache().tier().samples(), 0U);
  EXPECT_EQ(tier->samples(), 0U);
}

TEST_F(TwoNodesOneDisk, WhatIsReadSoonestLeavesFirst) {
  Fill(0, 40);
  std::vector<SampleId> order;
  for (SampleId id = 40; id-- > 0;)
    order.push_back(id);
  cache().uses().Add(kDiskStream, 1, 40, FirstPositions(order, 60));
  cluster.GiveAway(0);
  for (int i = 0; i < 50; ++i)
    End();
  // The other node has room for some of them.
  ASSERT_GT(cache().tier().samples(), 0U);
  ASSERT_GT(cluster.cache(1).tier().samples(), 0U);
  for (const auto& [id, _] : cluster.cache(1).tier().in_memory_entries())
    EXPECT_GE(id, cache().tier().samples()) << id;
}

// Read one after the other, as the receiver takes them: never all in memory at once.
TEST_F(TwoNodesOneDisk, ANodeThatGoesGivesAwayWhatLiesOnDisk) {
  Fill(0, 20);
  ASSERT_GT(tier->samples(), 0U);
  const RetentionManager& retention_manager = cache().retention_manager();
  EXPECT_EQ(retention_manager.Inventory(RetentionManager::OnDisk::kStays).size(),
            retention_manager.Inventory().size() - cache().tier().samples_on_disk());
  cache().retention_manager().GiveAway(RetentionManager::OnDisk::kStays,
                                       cluster.now() + seconds(50), cluster.now());
  for (int i = 0; i < 50; ++i)
    End();
  EXPECT_EQ(cache().tier().samples(), tier->samples());
  EXPECT_GT(tier->samples(), 0U);
  cluster.GiveAway(0);
  for (int i = 0; i < 50; ++i) {
    End();
    EXPECT_LE(cache().disk_read_bytes(), 16 * kSize);  // as many as are in flight
  }
  // As many as the other node has room for.
  EXPECT_EQ(cluster.cache(1).tier().samples(), 13U);
}

}  // namespace
}  // namespace optcache::node
