#include "coordination/savings.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

constexpr auto kMaxWait = static_cast<std::uint64_t>(kMaxSaved);

TEST(Savings, AddUp) {
  EXPECT_EQ(Plus({.requests = 3, .bytes = -5, .wait_us = 7}, {.requests = -4, .wait_us = 1}),
            (Savings{.requests = -1, .bytes = -5, .wait_us = 8}));
}

TEST(Savings, ASumStopsAtTheLimit) {
  const Savings most = {.requests = kMaxSaved, .bytes = -kMaxSaved, .wait_us = kMaxWait};
  EXPECT_TRUE(IsWithinLimits(most));
  EXPECT_EQ(Plus(most, most), most);
}

TEST(Savings, EachNumberHasALimit) {
  EXPECT_FALSE(IsWithinLimits({.requests = kMaxSaved + 1}));
  EXPECT_FALSE(IsWithinLimits({.requests = -kMaxSaved - 1}));
  EXPECT_FALSE(IsWithinLimits({.bytes = INT64_MIN}));
  EXPECT_FALSE(IsWithinLimits({.bytes = INT64_MAX}));
  EXPECT_FALSE(IsWithinLimits({.wait_us = kMaxWait + 1}));
}

}  // namespace
}  // namespace optcache::coordination
