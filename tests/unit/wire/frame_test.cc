#include "wire/frame.h"

#include <gtest/gtest.h>

#include "wire/codec.h"

namespace optcache::wire {
namespace {

TEST(Frame, HeaderSaysWhatWasWritten) {
  std::vector<std::byte> bytes;
  EXPECT_TRUE(AppendFrame(0x01020304, Push{}, 0x0a0b0c0d, bytes).ok());
  const auto header = ParseHeader(bytes);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->type, kTypeOf<Push>);
  EXPECT_EQ(header->request_id, 0x01020304U);
  EXPECT_EQ(header->payload_length, 0x0a0b0c0dU);
  EXPECT_EQ(header->body_length, bytes.size() - kHeaderBytes);
}

TEST(Frame, EveryTypeHasItsName) {
  EXPECT_EQ(AboutOf(TypeOf(Hello{})).name, "Hello");
  EXPECT_EQ(AboutOf(TypeOf(StreamProgress{})).name, "StreamProgress");
  EXPECT_EQ(AboutOf(TypeOf(Push{})).name, "Push");
}

}  // namespace
}  // namespace optcache::wire
