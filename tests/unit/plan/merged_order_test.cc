#include "plan/merged_order.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace optcache::plan
