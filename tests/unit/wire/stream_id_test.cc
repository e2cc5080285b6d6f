#include "wire/stream_id.h"

#include <gtest/gtest.h>

namespace optcache::wire {
namespace {

// The same in every process and every release: nodes and coordinators remember it.
TEST(StreamId, IsFixedByNameAndIncarnation) {
  EXPECT_EQ(StreamIdOf("vision/job-7/images/train", 1), StreamIdOf("vision/job-7/images/train", 1));
  EXPECT_EQ(StreamIdOf("local/local/images/train", 1), 0x60865da8c3391c9cULL);
}

TEST(StreamId, AnyDifferenceIsAnotherStream) {
  const StreamId id = StreamIdOf("vision/job-7/images/train", 1);
  EXPECT_NE(id, StreamIdOf("vision/job-7/images/train", 2));
  EXPECT_NE(id, StreamIdOf("vision/job-7/images/val", 1));
  EXPECT_NE(id, StreamIdOf("vision/job-8/images/train", 1));
}

}  // namespace
}  // namespace optcache::wire
