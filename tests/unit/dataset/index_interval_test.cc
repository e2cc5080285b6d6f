#include "dataset/index_interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

TEST(ParseIndexInterval, IsASpanOfTimeWithinBounds) {
  EXPECT_EQ(ParseIndexInterval("10m").value(), kIndexIntervalMin);
  EXPECT_EQ(ParseIndexInterval("1h30m").value(), std::chrono::minutes(90));
  EXPECT_EQ(ParseIndexInterval("720h").value(), kIndexIntervalMax);
}

TEST(ParseIndexInterval, SaysWhatIsAllowed) {
  for (const char* text : {"", "0", "600", "9m59s", "721h", "10m500ms", "daily", "-1h"}) {
    const auto interval = ParseIndexInterval(text);
    ASSERT_FALSE(interval.has_value()) << text;
    EXPECT_EQ(interval.error().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(interval.error().message(), testing::HasSubstr("from 10m to 720h")) << text;
  }
}

}  // namespace
}  // namespace optcache::dataset
