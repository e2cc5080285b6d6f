#include "cache/disk_tier.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <gmock/gmock.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "support/fake_segment_io.h"
#include "support/seeds.h"

namespace optcache::cache {
namespace {

constexpr std::uint64_t kTierDataset = 0xabc;
constexpr MonotonicTime kTierNow{std::chrono::hours(1)};

SampleRef BytesOf(SampleId id, ByteCount size) {
  const auto bytes = std::make_shared<SampleBytes>(size);
  std::ranges::fill(bytes->writable(), static_cast<std::byte>(id));
  return bytes;
}

DiskTier::NewSample NewOf(SampleId id, ByteCount size) {
  SampleRef bytes = BytesOf(id, size);
  const SegmentRecord record{.id = id,
                             .length = static_cast<std::uint32_t>(size),
                             .crc = Crc32c(bytes->bytes()),
                             .kept_after = {.stream = 1, .pass = 2, .position = id}};
  return {.record = record, .bytes = std::move(bytes)};
}

struct DiskTierTest : testing::Test {
  Status Write(std::vector<SampleId> ids, ByteCount size) {
    std::vector<DiskTier::NewSample> samples;
    for (const SampleId id : ids)
      samples.push_back(NewOf(id, size));
    Status written(Code::kInternal, "not called back");
    const Status begun = tier.Write(std::move(samples), kTierNow,
                                    [&written](const Status& status) { written = status; });
    if (!begun.ok()) return begun;
    io.EndAll();
    return written;
  }
  Result<SampleRef> Read(SampleId id) {
    Result<SampleRef> read = Error(Code::kInternal, "not called back");
    const Status begun =
        tier.Read(id, kTierNow, [&read](Result<SampleRef> result) { read = std::move(result); });
    if (!begun.ok()) return Error(begun);
    io.EndAll();
    return read;
  }

  FakeSegmentIo io;
  DiskState disk{64_MiB};
  DiskTier tier{kTierDataset, io, disk};
};

TEST_F(DiskTierTest, GivesBackWhatWasWritten) {
  ASSERT_TRUE(Write({5, 3, 9}, 10'000).ok());
  for (const SampleId id : {3U, 5U, 9U}) {
    const auto read = Read(id);
    ASSERT_TRUE(read) << read.error().ToString();
    EXPECT_TRUE(std::ranges::equal((*read)->bytes(), BytesOf(id, 10'000)->bytes()));
  }
  EXPECT_EQ(tier.payload_bytes(), 30'000U);
  EXPECT_EQ(disk.counters().payload_bytes, 30'000U);
  EXPECT_EQ(disk.used(), 36'864U);  // table and samples, in blocks
  EXPECT_EQ(disk.counters().file_bytes, 36'864U);
  EXPECT_THAT(io.files.at(1).content.records,
              testing::ElementsAre(testing::Field(&SegmentRecord::id, 5),
                                   testing::Field(&SegmentRecord::id, 3),
                                   testing::Field(&SegmentRecord::id, 9)));
  EXPECT_EQ(Read(4).error().code(), Code::kNotFound);
}

TEST_F(DiskTierTest, ASegmentGoesWithItsLastSample) {
  ASSERT_TRUE(Write({1, 2}, 5'000).ok());
  tier.Erase(1);
  io.EndAll();
  EXPECT_TRUE(io.files.contains(1));
  tier.Erase(2);
  tier.Erase(2);
  EXPECT_GT(disk.used(), 0U);  // until it is removed
  io.EndAll();
  EXPECT_TRUE(io.files.empty());
  EXPECT_EQ(disk.used(), 0U);
  EXPECT_EQ(tier.payload_bytes(), 0U);
  EXPECT_TRUE(tier.idle());
}

TEST_F(DiskTierTest, BlocksBetweenOthersAreGivenBack) {
  std::vector<SampleId> ids(40);
  for (SampleId id = 0; id < 40; ++id)
    ids[id] = id;
  ASSERT_TRUE(Write(ids, 10'000).ok());
  const ByteCount before = disk.used();
  for (const SampleId id : {5U, 9U, 7U, 6U, 8U, 10U})
    tier.Erase(id);
  io.EndAll();
  EXPECT_EQ(disk.used(), before);  // less than is worth a hole
  tier.Erase(11);
  io.EndAll();
  // The samples lie in bytes 4,096 + 50,000 to 4,096 + 120,000: whole blocks 14 to 30.
  ASSERT_EQ(io.files.at(1).holes.size(), 1U);
  EXPECT_EQ(io.files.at(1).holes[0], (Extent{.begin = 14 * 4096, .end = 30 * 4096}));
  EXPECT_EQ(disk.used(), before - 16 * 4096);
  EXPECT_EQ(disk.counters().returned_bytes, 16 * 4096U);
  EXPECT_TRUE(Read(4));
  EXPECT_TRUE(Read(12));
}

TEST_F(DiskTierTest, SmallHolesAreMadeWhereRoomIsWanted) {
  ASSERT_TRUE(Write({1, 2, 3, 4}, 10'000).ok());
  tier.Erase(2);
  io.EndAll();
  EXPECT_TRUE(io.files.at(1).holes.empty());
  EXPECT_FALSE(disk.Take(64_MiB));
  tier.Tick();
  io.EndAll();
  EXPECT_EQ(io.files.at(1).holes.size(), 1U);
  const ByteCount used = disk.used();
  tier.Erase(3);  // next to it: what is given back is counted once
  EXPECT_FALSE(disk.Take(64_MiB));
  tier.Tick();
  tier.Tick();
  io.EndAll();
  EXPECT_EQ(disk.used(), used - 3 * 4096);
}

TEST_F(DiskTierTest, WhereNothingCanBeGivenBackSegmentsGoAsAWhole) {
  io.punch_status = Status(Code::kInvalidArgument, "not on this file system");
  ASSERT_TRUE(Write({1, 2, 3}, 100'000).ok());
  const ByteCount before = disk.used();
  tier.Erase(2);
  tier.Erase(1);
  io.EndAll();
  EXPECT_EQ(disk.used(), before);
  tier.Erase(3);
  io.EndAll();
  EXPECT_EQ(disk.used(), 0U);
}

TEST_F(DiskTierTest, NeverMoreThanTheBudget) {
  DiskState small(40'000);
  DiskTier other(kTierDataset, io, small);
  EXPECT_EQ(other.Write({NewOf(1, 40'000)}, kTierNow, [](const Status&) {}).code(),
            Code::kResourceExhausted);
  EXPECT_EQ(io.writes, 0U);
  EXPECT_TRUE(other.Write({NewOf(1, 30'000)}, kTierNow, [](const Status&) {}).ok());
  io.EndAll();
  EXPECT_EQ(small.used(), 36'864U);
}

TEST_F(DiskTierTest, WritesAFewSegmentsAtATime) {
  int done = 0;
  const auto write = [&](SampleId id) {
    return tier.Write({NewOf(id, 100)}, kTierNow, [&done](const Status&) { ++done; }).code();
  };
  EXPECT_EQ(write(1), Code::kOk);
  EXPECT_EQ(write(2), Code::kOk);
  EXPECT_EQ(write(3), Code::kUnavailable);
  EXPECT_TRUE(tier.busy());
  io.EndAll();
  EXPECT_EQ(done, 2);
  EXPECT_EQ(write(3), Code::kOk);
}

TEST_F(DiskTierTest, WhatCouldNotBeWrittenIsNotThere) {
  io.next_write = Status(Code::kResourceExhausted, "no space left on device");
  EXPECT_EQ(Write({1}, 1000).code(), Code::kResourceExhausted);
  EXPECT_FALSE(tier.Contains(1));
  EXPECT_EQ(disk.used(), 0U);
  EXPECT_EQ(Write({1}, 1000).code(), Code::kUnavailable);  // it rests
}

TEST_F(DiskTierTest, ASampleWithAWrongChecksumIsGone) {
  ASSERT_TRUE(Write({1, 2}, 1000).ok());
  io.flips_bits = true;
  EXPECT_EQ(Read(1).error().code(), Code::kDataLoss);
  EXPECT_FALSE(tier.Contains(1));
  io.flips_bits = false;
  EXPECT_TRUE(Read(2));
  EXPECT_EQ(disk.counters().bad_samples, 1U);
}

TEST_F(DiskTierTest, TooMuchToDoLosesNothing) {
  ASSERT_TRUE(Write({1}, 1000).ok());
  io.read_status = Status(Code::kUnavailable, "too much waits");
  EXPECT_EQ(Read(1).error().code(), Code::kUnavailable);
  io.read_status = Status();
  EXPECT_TRUE(Read(1));
}

TEST_F(DiskTierTest, ADiskOutOfUseHasNothing) {
  std::vector<SampleId> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  ASSERT_TRUE(Write(ids, 1000).ok());
  io.read_status = Status(Code::kInternal, "input/output error");
  for (SampleId id = 1; id <= 8; ++id)
    EXPECT_EQ(Read(id).error().code(), Code::kInternal);
  EXPECT_TRUE(disk.out_of_use());
  io.read_status = Status();
  EXPECT_EQ(Read(9).error().code(), Code::kNotFound);
  EXPECT_EQ(Write({11}, 1000).code(), Code::kUnavailable);
}

// Its file stays until the read has ended.
TEST_F(DiskTierTest, WhatIsBeingReadMayGo) {
  ASSERT_TRUE(Write({1}, 1000).ok());
  Result<SampleRef> read = Error(Code::kInternal, "not called back");
  ASSERT_TRUE(
      tier.Read(1, kTierNow, [&](Result<SampleRef> result) { read = std::move(result); }).ok());
  tier.Erase(1);
  EXPECT_EQ(io.pending(), 1U);
  io.EndAll();
  EXPECT_TRUE(read);
  EXPECT_TRUE(io.files.empty());
}

TEST_F(DiskTierTest, ANewerCopyReplacesAnOlderOne) {
  ASSERT_TRUE(Write({1}, 1000).ok());
  ASSERT_TRUE(Write({1, 2}, 2000).ok());
  EXPECT_EQ((*Read(1))->size(), 2000U);
  EXPECT_EQ(io.files.size(), 1U);
  EXPECT_EQ(tier.payload_bytes(), 4000U);
}

TEST_F(DiskTierTest, WhatEndsAfterItIsIgnored) {
  auto gone = std::make_unique<DiskTier>(kTierDataset, io, disk);
  bool called = false;
  ASSERT_TRUE(gone->Write({NewOf(1, 100)}, kTierNow, [&](const Status&) { called = true; }).ok());
  gone.reset();
  io.EndAll();
  EXPECT_FALSE(called);
}

FoundSegment FoundOf(const FakeSegmentIo::File& file) {
  const SegmentContent& content = file.content;
  std::string bytes = EncodeSegmentTable(content.name, content.records);
  const ByteCount size = SegmentFileBytes(content.records);
  std::vector<Extent> holes = file.holes;
  std::ranges::sort(holes, {}, &Extent::begin);
  FoundSegment found{.name = content.name,
                     .segment = ParseSegment(content.name, AsBytes(bytes), size, holes).value(),
                     .file_bytes = size,
                     .holes = holes};
  for (const Extent& hole : holes)
    found.file_bytes -= hole.size();
  return found;
}

// Its file stays, so its room is taken and its name is not free.
TEST_F(DiskTierTest, OfASegmentThatCannotBeReadItTakesNumberAndRoom) {
  tier.Adopt({.name = {.dataset = kTierDataset, .number = 7},
              .segment = {},
              .file_bytes = 8192,
              .holes = {},
              .status = {Code::kInternal, "the disk cannot be read"}});
  EXPECT_EQ(disk.used(), 8192U);
  EXPECT_EQ(disk.usable(), 64_MiB - 8192);
  EXPECT_EQ(tier.samples(), 0U);
  io.EndAll();
  EXPECT_EQ(disk.used(), 8192U);
  ASSERT_TRUE(Write({0, 1}, 10'000).ok());
  EXPECT_TRUE(io.files.contains(8));
}

TEST_F(DiskTierTest, AdoptsWhatALifeBeforeLeft) {
  std::vector<SampleId> ids(40);
  for (SampleId id = 0; id < 40; ++id)
    ids[id] = id;
  ASSERT_TRUE(Write(ids, 10'000).ok());
  for (SampleId id = 5; id < 13; ++id)
    tier.Erase(id);
  io.EndAll();
  DiskState later_disk(64_MiB);
  DiskTier later(kTierDataset, io, later_disk);
  later.Adopt(FoundOf(io.files.at(1)));
  EXPECT_EQ(later_disk.used(), disk.used());
  EXPECT_FALSE(later.Contains(5));
  EXPECT_FALSE(later.Contains(11));
  EXPECT_TRUE(later.Contains(12));  // it left no whole block: nothing says that it had gone
  EXPECT_EQ(later.samples(), tier.samples() + 1);
  auto samples = later.Samples();
  std::ranges::sort(samples, {}, &SegmentRecord::id);
  EXPECT_EQ(samples.front(), NewOf(0, 10'000).record);
  // What was given back is not counted again.
  later.Erase(12);
  later.Erase(13);
  EXPECT_FALSE(later_disk.Take(64_MiB));
  later.Tick();
  io.EndAll();
  EXPECT_EQ(later_disk.used(), disk.used() - 5 * 4096);
  for (const SampleId id : ids)
    later.Erase(id);
  io.EndAll();
  EXPECT_EQ(later_disk.used(), 0U);
  EXPECT_TRUE(io.files.empty());
}

// Against a map: whatever is written, read and erased, no byte is wrong, and nothing is taken that
// is not used.
TEST_F(DiskTierTest, KeepsItsAccountsOverManyChanges) {
  const std::uint64_t seed = TestSeed(18);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  std::set<SampleId> here;
  for (int round = 0; round < 400; ++round) {
    std::vector<SampleId> ids;
    for (int i = 0; i < 12; ++i) {
      const auto id = static_cast<SampleId>(random.Below(500));
      if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    }
    if (Write(ids, 1 + random.Below(30'000)).ok()) here.insert(ids.begin(), ids.end());
    for (int i = 0; i < 10; ++i) {
      const auto id = static_cast<SampleId>(random.Below(500));
      tier.Erase(id);
      here.erase(id);
    }
    tier.Tick();
    io.EndAll();
    const auto id = static_cast<SampleId>(random.Below(500));
    ASSERT_EQ(Read(id).has_value(), here.contains(id));
    ASSERT_EQ(tier.samples(), here.size());
    ByteCount taken = 0;
    for (const auto& [_, file] : io.files) {
      taken += SegmentFileBytes(file.content.records);
      std::set<ByteCount> blocks;
      for (const Extent& hole : file.holes) {
        for (ByteCount at = hole.begin; at < hole.end; at += kSegmentBlock)
          blocks.insert(at);
      }
      taken -= blocks.size() * kSegmentBlock;
    }
    ASSERT_EQ(disk.used(), taken);
  }
  tier.EraseAll();
  io.EndAll();
  EXPECT_EQ(disk.used(), 0U);
  EXPECT_TRUE(io.files.empty());
}

}  // namespace
}  // namespace optcache::cache
