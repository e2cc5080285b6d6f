#include "base/bytes.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(ParseQuantity, ReadsKubernetesQuantities) {
  EXPECT_EQ(ParseQuantity("1024").value(), 1024U);
  EXPECT_EQ(ParseQuantity("500Gi").value(), 500_GiB);
  EXPECT_EQ(ParseQuantity("1.5M").value(), 1'500'000U);
  EXPECT_EQ(ParseQuantity("0").value(), 0U);
}

TEST(ParseQuantity, RefusesAnythingElse) {
  for (const char* text : {"", "Gi", "5 Gi", "5GiB", "-1", "1e3", "nan", "9999999E", "5gi"}) {
    const auto result = ParseQuantity(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
  }
}

TEST(FormatSignedBytes, HasTheSignOfADifference) {
  EXPECT_EQ(FormatSignedBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatSignedBytes(0), "0 B");
  EXPECT_EQ(FormatSignedBytes(-1536), "-1.50 KiB");
  EXPECT_EQ(FormatSignedBytes(std::numeric_limits<std::int64_t>::min()),
            "-" + FormatBytes(ByteCount{1} << 63U));
}

TEST(FormatBytes, GivesThreeDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(135_MiB), "135 MiB");
}

}  // namespace
}  // namespace optcache
