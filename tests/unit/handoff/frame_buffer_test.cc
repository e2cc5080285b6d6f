#include "handoff/frame_buffer.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "handoff/codec.h"

namespace optcache::handoff {
namespace {

void Feed(FrameBuffer& buffer, ByteSpan bytes) {
  while (!bytes.empty()) {
    const MutableByteSpan space = buffer.Prepare();
    const std::size_t n = std::min(space.size(), bytes.size());
    std::memcpy(space.data(), bytes.data(), n);
    buffer.Commit(n);
    bytes = bytes.subspan(n);
  }
}

FrameBytes GetOf(std::size_t ids) {
  return EncodeClientFrame(7, GetRequest{.ids = std::vector<SampleId>(ids, 3)});
}

TEST(FrameBuffer, GivesAFrameWhenItsLastByteHasCome) {
  const FrameBytes frame = GetOf(5);
  FrameBuffer buffer;
  for (std::size_t i = 0; i + 1 < frame.size(); ++i) {
    Feed(buffer, ByteSpan(frame).subspan(i, 1));
    const auto next = buffer.Next();
    ASSERT_TRUE(next);
    ASSERT_FALSE(next->has_value());
  }
  Feed(buffer, ByteSpan(frame).last(1));
  const auto next = buffer.Next();
  ASSERT_TRUE(next && next->has_value());
  EXPECT_EQ((*next)->type, FrameType::kGet);
  EXPECT_EQ((*next)->request, 7U);
  EXPECT_EQ((*next)->body.size(), frame.size() - sizeof(FrameHeader));
  EXPECT_EQ(buffer.pending(), 0U);
}

TEST(FrameBuffer, GivesSeveralFramesOfOneRead) {
  FrameBytes two = GetOf(2);
  const FrameBytes second = GetOf(0);
  two.insert(two.end(), second.begin(), second.end());
  FrameBuffer buffer;
  Feed(buffer, two);
  EXPECT_TRUE(buffer.Next()->has_value());
  EXPECT_TRUE(buffer.Next()->has_value());
  EXPECT_FALSE(buffer.Next()->has_value());
}

TEST(FrameBuffer, GrowsForALongFrame) {
  const FrameBytes frame = GetOf(kMaxIds);
  FrameBuffer buffer;
  for (std::size_t i = 0; i < frame.size(); i += 1000) {
    ASSERT_FALSE(buffer.Next()->has_value());
    Feed(buffer, ByteSpan(frame).subspan(i, std::min<std::size_t>(1000, frame.size() - i)));
  }
  EXPECT_TRUE(buffer.Next()->has_value());
}

TEST(FrameBuffer, RefusesALengthOverTheLimit) {
  FrameBytes frame = GetOf(0);
  frame[3] = std::byte{1};  // 16 MiB
  FrameBuffer buffer;
  Feed(buffer, frame);
  EXPECT_EQ(buffer.Next().error().code(), Code::kInvalidArgument);
}

TEST(FrameBuffer, RefusesWhatIsNoFrame) {
  FrameBuffer buffer;
  Feed(buffer, AsBytes("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(buffer.Next().error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::handoff
