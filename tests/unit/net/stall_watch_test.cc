#include "net/internal/stall_watch.h"

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

using std::chrono::seconds;

TEST(StallWatch, LooksFourTimesADeadline) {
  EXPECT_EQ(StallWatch({.stall_deadline = seconds(8)}).interval(), seconds(2));
  EXPECT_EQ(StallWatch({.stall_deadline = seconds(8), .idle_deadline = seconds(4)}).interval(),
            seconds(1));
}

TEST(StallWatch, FindsAHalfFrameThatDoesNotGoOn) {
  StallWatch watch({.stall_deadline = seconds(4)});
  EXPECT_FALSE(watch.Tick({.bytes_in = 10, .mid_frame = true}));
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(watch.Tick({.bytes_in = 10, .mid_frame = true}));
  const auto stalled = watch.Tick({.bytes_in = 10, .mid_frame = true});
  ASSERT_TRUE(stalled);
  EXPECT_EQ(stalled->code(), Code::kDeadlineExceeded);
}

TEST(StallWatch, ASlowButMovingFrameIsLeftAlone) {
  StallWatch watch({.stall_deadline = seconds(4), .stall_bytes = 400});
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(watch.Tick({.bytes_in = i / 3 * 100, .mid_frame = true}));
  }
}

TEST(StallWatch, FindsAFrameThatTrickles) {
  StallWatch watch({.stall_deadline = seconds(4), .stall_bytes = 400});
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_FALSE(watch.Tick({.bytes_in = i * 99, .mid_frame = true}));
  EXPECT_TRUE(watch.Tick({.bytes_in = 4 * 99, .mid_frame = true}));
}

TEST(StallWatch, ShortFramesMayComeSeldom) {
  StallWatch watch({.stall_deadline = seconds(4), .stall_bytes = 400});
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_FALSE(watch.Tick({.bytes_in = i, .mid_frame = i % 2 == 0}));
}

TEST(StallWatch, SilenceBetweenFramesIsFine) {
  StallWatch watch({.stall_deadline = seconds(4)});
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(watch.Tick({.bytes_in = 10}));
}

TEST(StallWatch, FindsAPeerThatDoesNotRead) {
  StallWatch watch({.stall_deadline = seconds(4)});
  EXPECT_FALSE(watch.Tick({.bytes_out = 5, .queued = true}));
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(watch.Tick({.bytes_out = 5, .queued = true}));
  EXPECT_TRUE(watch.Tick({.bytes_out = 5, .queued = true}));
}

TEST(StallWatch, FindsSilenceIfThatHasADeadline) {
  StallWatch watch({.stall_deadline = seconds(4), .idle_deadline = seconds(8)});
  EXPECT_FALSE(watch.Tick({.bytes_in = 1}));
  for (int i = 0; i < 7; ++i)
    EXPECT_FALSE(watch.Tick({.bytes_in = 1}));
  EXPECT_TRUE(watch.Tick({.bytes_in = 1}));
}

}  // namespace
}  // namespace optcache::net
