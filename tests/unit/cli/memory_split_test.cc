#include "cli/up/memory_split.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using coordination::ClusterStatus;
using coordination::DatasetSpec;
using std::chrono::seconds;

const MonotonicTime kBegin{seconds(1000)};

WantedDataset Wanting(const std::string& name, ByteCount bytes) {
  return {.spec = {.name = name, .samples = 10, .bytes = bytes, .capacity = bytes}};
}

ClusterStatus Read(ByteCount memory, double rate_of_a, double rate_of_b) {
  ClusterStatus status{.members = {{.id = 1, .name = "one", .capacity = memory / 2},
                                   {.id = 2, .name = "two", .capacity = memory / 2}}};
  for (const auto& [name, rate] : {std::pair("a", rate_of_a), std::pair("b", rate_of_b)}) {
    status.datasets.push_back({.name = name, .total_samples = 10, .total_bytes = 100});
    if (rate > 0)
      status.datasets.back().streams = {{.name = std::string("x/") + name, .rate = rate}};
  }
  return status;
}

TEST(MemorySplit, WhereThereIsEnoughNothingChanges) {
  MemorySplit split({Wanting("a", 100), Wanting("b", 100)});
  EXPECT_FALSE(split.Update(Read(200, 0, 0), kBegin));
  EXPECT_FALSE(split.Update(Read(200, 5, 1), kBegin));
}

TEST(MemorySplit, ACapacityBeyondTheDatasetStaysAsItWasWanted) {
  MemorySplit split({Wanting("a", 100)});
  EXPECT_FALSE(split.Update(Read(150, 0, 0), kBegin));
}

TEST(MemorySplit, NobodyIsToldOfNothingBeforeNodesAreThere) {
  MemorySplit split({Wanting("a", 100)});
  EXPECT_FALSE(split.Update({}, kBegin));
}

TEST(MemorySplit, WhatIsReadFasterGetsWhatThereIs) {
  MemorySplit split({Wanting("a", 100), Wanting("b", 100)});
  auto specs = split.Update(Read(120, 0, 0), kBegin);
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].capacity, 60U);
  specs = split.Update(Read(120, 1, 10), kBegin);
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].capacity, 20U);
  EXPECT_EQ((*specs)[0].note, "20 B of 100 B: saves 2 B/s; the next byte is worth more to b");
  EXPECT_EQ((*specs)[1].capacity, 100U);
  EXPECT_EQ((*specs)[1].note, "");
}

TEST(MemorySplit, FollowsRatesOnlyNowAndThen) {
  MemorySplit split({Wanting("a", 100), Wanting("b", 100)});
  ASSERT_TRUE(split.Update(Read(120, 1, 10), kBegin));
  EXPECT_FALSE(split.Update(Read(120, 10, 1), kBegin + seconds(1)));
  const auto specs = split.Update(Read(120, 10, 1), kBegin + coordination::kSettledFor);
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].capacity, 100U);
}

TEST(MemorySplit, GuaranteesAreKept) {
  MemorySplit split({{.spec = Wanting("a", 100).spec, .guaranteed = 50}, Wanting("b", 100)});
  const auto specs = split.Update(Read(120, 1, 10), kBegin);
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].capacity, 50U);
}

ClusterStatus WithDisks(ByteCount memory, ByteCount disk) {
  ClusterStatus status = Read(memory, 0, 0);
  for (coordination::MemberStatus& member : status.members)
    member.disk = disk / 2;
  return status;
}

TEST(MemorySplit, WhatDisksHoldBesideMemoryIsNotMissing) {
  WantedDataset on_disk = Wanting("a", 100);
  on_disk.spec.with_disk = 100;
  MemorySplit split({on_disk});
  const auto specs = split.Update(WithDisks(20, 200), kBegin);
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].capacity, 20U);
  EXPECT_EQ((*specs)[0].with_disk, 100U);
  EXPECT_EQ((*specs)[0].note, "");
}

TEST(MemorySplit, SaysWhatMemoryAndDisksTogetherLack) {
  WantedDataset on_disk = Wanting("a", 100);
  on_disk.spec.with_disk = 100;
  MemorySplit split({on_disk});
  const auto specs = split.Update(WithDisks(20, 40), kBegin);
  ASSERT_TRUE(specs);
  EXPECT_EQ((*specs)[0].note,
            "60 B of 100 B: no job reads it; its nodes offer no more; 40 B of it on disk");
}

}  // namespace
}  // namespace optcache::cli
