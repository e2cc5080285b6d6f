#include "dataset/store_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30U;

TEST(CostOf, IsThatOfRequestsAndOfBytes) {
  const StorePrice price{.per_request = 0.5, .per_gib = 4};
  EXPECT_DOUBLE_EQ(*CostOf(price, {.requests = 10, .bytes = 3 * kGib}), 17);
  EXPECT_DOUBLE_EQ(*CostOf({.per_request = 0.5}, {.requests = 10, .bytes = kGib}), 5);
  EXPECT_DOUBLE_EQ(*CostOf({.per_gib = 4}, {.requests = 10, .bytes = kGib / 2}), 2);
}

TEST(CostOf, IsBelowZeroWhereTheTrafficIs) {
  EXPECT_DOUBLE_EQ(*CostOf({.per_request = 0.5, .per_gib = 4}, {.requests = -2, .bytes = -kGib}),
                   -5);
}

TEST(CostOf, IsNotKnownWithoutAPrice) {
  EXPECT_EQ(CostOf({}, {.requests = 10, .bytes = kGib}), std::nullopt);
}

TEST(ParsePrice, IsADecimalNumber) {
  EXPECT_EQ(ParsePrice("0.0000004").value(), 0.0000004);
  EXPECT_EQ(ParsePrice("5").value(), 5);
  EXPECT_EQ(ParsePrice("1000000").value(), kPriceMax);
}

TEST(ParsePrice, SaysWhatIsAllowed) {
  for (const char* text : {"", "0", "0.000", "-1", "1e-6", ".5", "5.", "1.2.3", "0,5", "5 EUR",
                           "nan", "inf", "1000000.1", "0.0000000000000000000000000000000001"}) {
    const auto price = ParsePrice(text);
    ASSERT_FALSE(price.has_value()) << text;
    EXPECT_EQ(price.error().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(price.error().message(), testing::HasSubstr("a decimal number above 0")) << text;
  }
}

TEST(FormatPrice, IsReadAgain) {
  EXPECT_EQ(FormatPrice(0.0000004), "0.0000004");
  EXPECT_EQ(FormatPrice(5), "5");
  for (const char* text : {"0.000000000000000000000000000001", "123456.789", "0.1", "999999.99"})
    EXPECT_EQ(ParsePrice(FormatPrice(ParsePrice(text).value())), ParsePrice(text)) << text;
}

TEST(FormatMoney, HasTheDigitsThatCount) {
  EXPECT_EQ(FormatMoney(1234567.891), "1234567.89");
  EXPECT_EQ(FormatMoney(-8.356), "-8.36");
  EXPECT_EQ(FormatMoney(0.000012), "0.000012");
  EXPECT_EQ(FormatMoney(0), "0.00");
}

}  // namespace
}  // namespace optcache::dataset
