#include "net/internal/connections_by_source.h"

#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "support/seeds.h"

namespace optcache::net {
namespace {

TEST(ConnectionsBySource, ASourceIsAnAddress) {
  EXPECT_EQ(SourceOf("10.0.0.7:4123"), "10.0.0.7");
  EXPECT_EQ(SourceOf("[fd00:1:2:3:4:5:6:7]:4123"), "fd00:1:2:3:4:5:6:7");
  EXPECT_EQ(SourceOf("[fe80::1%eth0]:1"), "fe80::1%eth0");
  EXPECT_EQ(SourceOf("unix:/run/node.sock"), "");
}

// Kubernetes gives the pods of a machine addresses of one network of 64 bits.
TEST(ConnectionsBySource, PodsOfOneMachineAreDifferentSources) {
  EXPECT_NE(SourceOf("[fd00:1:2:3::9]:1"), SourceOf("[fd00:1:2:3::a]:1"));
  EXPECT_EQ(SourceOf("[fd00:1:2:3::9]:1"), SourceOf("[fd00:1:2:3::9]:2"));
}

TEST(ConnectionsBySource, KnowsTheOldest) {
  ConnectionsBySource connections;
  EXPECT_EQ(connections.Most(), std::nullopt);
  EXPECT_EQ(connections.OldestOfMost(), std::nullopt);
  EXPECT_EQ(connections.Oldest("a"), std::nullopt);
  connections.Add("a", 1);
  connections.Add("b", 2);
  EXPECT_EQ(connections.OldestOfMost(), 1U) << "of equals";
  connections.Add("b", 3);
  EXPECT_EQ(connections.Most(), "b");
  EXPECT_EQ(connections.OldestOfMost(), 2U);
  EXPECT_EQ(connections.Oldest("a"), 1U);
  EXPECT_EQ(connections.size(), 3U);
  EXPECT_EQ(connections.size("b"), 2U);
}

TEST(ConnectionsBySource, WhatHasGoneDoesNotCount) {
  ConnectionsBySource connections;
  connections.Add("a", 1);
  connections.Remove("a", 2);
  connections.Remove("b", 1);
  EXPECT_EQ(connections.size(), 1U);
  connections.Remove("a", 1);
  connections.Remove("a", 1);
  EXPECT_TRUE(connections.empty());
  EXPECT_EQ(connections.OldestOfMost(), std::nullopt);
}

// By a look at all sources.
std::optional<std::string> SlowMost(const std::map<std::string, std::set<std::uint64_t>>& sources) {
  std::optional<std::string> most;
  for (const auto& [source, ids] : sources) {
    if (ids.empty()) continue;
    if (!most || ids.size() > sources.at(*most).size() ||
        (ids.size() == sources.at(*most).size() && *ids.begin() < *sources.at(*most).begin())) {
      most = source;
    }
  }
  return most;
}

TEST(ConnectionsBySource, FindsWhatALookAtAllSourcesFinds) {
  const std::uint64_t seed = TestSeed(20);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  ConnectionsBySource connections;
  std::map<std::string, std::set<std::uint64_t>> slow;
  for (int i = 0; i < 3000; ++i) {
    const std::string source(1, static_cast<char>('a' + random() % 6));
    const std::uint64_t id = random() % 40 * 6 + static_cast<std::uint64_t>(source[0] - 'a');
    if (random() % 2 == 0) {
      connections.Add(source, id);
      slow[source].insert(id);
    } else {
      connections.Remove(source, id);
      slow[source].erase(id);
    }
    const auto most = SlowMost(slow);
    ASSERT_EQ(connections.Most(), most);
    if (!most) continue;
    ASSERT_EQ(connections.OldestOfMost(), *slow[*most].begin());
    ASSERT_EQ(connections.size(*most), slow[*most].size());
  }
}

}  // namespace
}  // namespace optcache::net
