#include "dataset/patience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

TEST(ParsePatience, IsASpanOfTimeWithinBounds) {
  EXPECT_EQ(ParsePatience("10m").value(), kPatience);
  EXPECT_EQ(ParsePatience("1s").value(), kPatienceMin);
  EXPECT_EQ(ParsePatience("24h").value(), kPatienceMax);
  EXPECT_EQ(ParsePatience("1h30m").value(), std::chrono::minutes(90));
}

TEST(ParsePatience, SaysWhatIsAllowed) {
  for (const char* text : {"", "0", "0s", "600", "25h", "500ms", "1500ms", "ten minutes", "-1s"}) {
    const auto patience = ParsePatience(text);
    ASSERT_FALSE(patience.has_value()) << text;
    EXPECT_EQ(patience.error().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(patience.error().message(), testing::HasSubstr("from 1s to 24h")) << text;
  }
}

}  // namespace
}  // namespace optcache::dataset
