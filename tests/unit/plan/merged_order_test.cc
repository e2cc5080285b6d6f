#include "plan/merged_order.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::plan {
namespace {

Order Ids(std::vector<SampleId> ids) {
  return std::make_shared<const std::vector<SampleId>>(std::move(ids));
}

MergeStream OneSegment(std::vector<SampleId> ids, std::uint32_t rate) {
  const Order order = Ids(std::move(ids));
  return {.segments = {{.order = order, .pass = 0, .begin = 0, .end = order->size()}},
          .node_of_rank = {0},
          .rate = rate,
          .reads_done = 0};
}

std::vector<SampleId> Samples(const MergedOrder& merged) {
  std::vector<SampleId> samples;
  MergedOrder::Cursor cursor(merged);
  for (std::size_t i = 0; i < merged.size(); ++i)
    samples.push_back(cursor.Next().sample);
  return samples;
}

TEST(MergedOrder, StreamsOfOneRateTakeTurns) {
  const MergedOrder merged({OneSegment({0, 1, 2}, 5), OneSegment({10, 11, 12}, 5)}, 100);
  EXPECT_EQ(Samples(merged), (std::vector<SampleId>{0, 10, 1, 11, 2, 12}));
}

TEST(MergedOrder, AFasterStreamReadsMore) {
  const MergedOrder merged({OneSegment({0, 1, 2}, 1), OneSegment({10, 11, 12, 13}, 2)}, 100);
  EXPECT_EQ(Samples(merged), (std::vector<SampleId>{10, 0, 11, 12, 1, 13, 2}));
}

TEST(MergedOrder, GoesOnWhereVirtualTimeStood) {
  MergeStream first = OneSegment({0, 1}, 1);
  MergeStream second = OneSegment({10, 11}, 1);
  second.reads_done = 1;
  const MergedOrder merged({first, second}, 100);
  EXPECT_EQ(Samples(merged), (std::vector<SampleId>{0, 1, 10, 11}));
}

TEST(MergedOrder, StopsAtItsLimit) {
  const MergedOrder merged({OneSegment({0, 1, 2}, 1), OneSegment({10, 11, 12}, 1)}, 3);
  EXPECT_EQ(Samples(merged), (std::vector<SampleId>{0, 10, 1}));
  EXPECT_EQ(merged.ReadsByStream(3), (std::vector<std::uint64_t>{2, 1}));
}

TEST(MergedOrder, CrossesFromPassToPassAndTellsTheReader) {
  MergeStream stream;
  stream.segments = {{.order = Ids({0, 1, 2}), .pass = 4, .begin = 1, .end = 3},
                     {.order = Ids({5, 6, 7}), .pass = 5, .begin = 0, .end = 2}};
  stream.node_of_rank = {8, 9};
  const MergedOrder merged({stream}, 100);
  MergedOrder::Cursor cursor(merged);
  const std::vector<SampleId> samples = {1, 2, 5, 6};
  const std::vector<NodeIndex> readers = {9, 8, 8, 9};
  for (std::size_t i = 0; i < 4; ++i) {
    const MergedOrder::Read read = cursor.Next();
    EXPECT_EQ(read.sample, samples[i]);
    EXPECT_EQ(read.reader, readers[i]);
  }
  for (std::size_t i = 4; i-- > 0;) {
    const MergedOrder::Read read = cursor.Previous();
    EXPECT_EQ(read.sample, samples[i]);
    EXPECT_EQ(read.reader, readers[i]);
  }
}

TEST(MergedOrder, EndWalksBackToTheFront) {
  const MergedOrder merged({OneSegment({0, 1, 2}, 3), OneSegment({10, 11}, 2)}, 100);
  std::vector<SampleId> forward = Samples(merged);
  MergedOrder::Cursor cursor = merged.End();
  for (std::size_t i = merged.size(); i-- > 0;)
    EXPECT_EQ(cursor.Previous().sample, forward[i]);
}

// Every read's time by division, then sorted.
std::vector<std::uint8_t> TurnsBySorting(const std::vector<MergeStream>& streams) {
  std::vector<std::pair<std::uint64_t, std::uint8_t>> reads;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    for (std::uint64_t k = 1; k <= streams[s].segments[0].end; ++k) {
      const std::uint64_t number = streams[s].reads_done + k;
      reads.emplace_back(number * (1ULL << 24U) / streams[s].rate, static_cast<std::uint8_t>(s));
    }
  }
  std::sort(reads.begin(), reads.end());
  std::vector<std::uint8_t> turns;
  for (const auto& [time, stream] : reads)
    turns.push_back(stream);
  return turns;
}

TEST(MergedOrder, IsThatOfAllTimesSorted) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::vector<MergeStream> streams;
    const std::size_t count = 1 + random.Below(5);
    const auto fastest = 1 + random.Below(random.Below(2) == 0 ? 12 : 3000);
    for (std::size_t s = 0; s < count; ++s) {
      const auto rate = static_cast<std::uint32_t>(1 + random.Below(fastest));
      MergeStream& stream =
          streams.emplace_back(OneSegment(std::vector<SampleId>(1 + random.Below(800)), rate));
      stream.reads_done = random.Below(3) * random.Below(1000);
    }
    const std::vector<std::uint8_t> expected = TurnsBySorting(streams);
    const std::size_t limit =
        random.Below(2) == 0 ? expected.size() : random.Below(expected.size()) + 1;
    const MergedOrder merged(streams, limit);
    ASSERT_EQ(merged.size(), limit);
    MergedOrder::Cursor cursor(merged);
    for (std::size_t t = 0; t < limit; ++t)
      ASSERT_EQ(cursor.Next().stream, expected[t]) << "read " << t;
  }
}

// However many reads the streams make in a unit of time.
TEST(MergedOrder, EndsSoonWhereItIsStopped) {
  for (const std::uint32_t rate : {1U, 1000U}) {
    const std::vector<SampleId> ids(100'000);
    const std::vector<MergeStream> streams(8, OneSegment(ids, rate));
    std::size_t looks = 0;
    const MergedOrder merged(streams, 800'000, StopCheck([&looks] { return ++looks >= 5; }));
    EXPECT_LE(merged.size(), 5 * StopCheck::kSteps + 8 * rate) << rate;
  }
}

}  // namespace
}  // namespace optcache::plan
