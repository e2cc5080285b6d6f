#include "net/internal/waiting_by_source.h"

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

TEST(WaitingBySource, ASourceIsAnAddressOrANetwork) {
  EXPECT_EQ(SourceOf("10.0.0.7:4123"), "10.0.0.7");
  EXPECT_EQ(SourceOf("[fd00:1:2:3:4:5:6:7]:4123"), "fd00:1:2:3::");
  EXPECT_EQ(SourceOf("[fd00:1:2:3::9]:1"), SourceOf("[fd00:1:2:3:4:5:6:7]:4123"));
  EXPECT_NE(SourceOf("[fd00:1:2:4::9]:1"), SourceOf("[fd00:1:2:3::9]:1"));
  EXPECT_EQ(SourceOf("[fe80::1%eth0]:1"), "fe80::1%eth0");
  EXPECT_EQ(SourceOf("unix:/run/node.sock"), "");
}

TEST(WaitingBySource, KnowsWhoWaitsLongest) {
  WaitingBySource waiting;
  EXPECT_EQ(waiting.LongestOfMost(), std::nullopt);
  EXPECT_EQ(waiting.Longest("a"), std::nullopt);
  waiting.Add("a", 1);
  waiting.Add("b", 2);
  EXPECT_EQ(waiting.LongestOfMost(), 1U) << "of equals";
  waiting.Add("b", 3);
  EXPECT_EQ(waiting.LongestOfMost(), 2U);
  EXPECT_EQ(waiting.Longest("a"), 1U);
  EXPECT_EQ(waiting.size(), 3U);
  EXPECT_EQ(waiting.size("b"), 2U);
}

TEST(WaitingBySource, WhoHasGoneDoesNotWait) {
  WaitingBySource waiting;
  waiting.Add("a", 1);
  waiting.Remove("a", 2);
  waiting.Remove("b", 1);
  EXPECT_EQ(waiting.size(), 1U);
  waiting.Remove("a", 1);
  waiting.Remove("a", 1);
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(waiting.LongestOfMost(), std::nullopt);
}

}  // namespace
}  // namespace optcache::net
