#include "net/peer.h"

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

TEST(PeerInfo, IsEachOfItsNamesWithoutCase) {
  const PeerInfo peer = {.address = "10.0.0.7:4123", .dns_names = {"optcache-node", "NODE-7x2k"}};
  EXPECT_TRUE(peer.Is("optcache-node"));
  EXPECT_TRUE(peer.Is("Optcache-Node"));
  EXPECT_TRUE(peer.Is("node-7x2k"));
}

TEST(PeerInfo, IsNothingElse) {
  const PeerInfo peer = {.address = "10.0.0.7:4123", .dns_names = {"optcache-node", "*.pods"}};
  EXPECT_FALSE(peer.Is("optcache-nod"));
  EXPECT_FALSE(peer.Is("optcache-node2"));
  EXPECT_FALSE(peer.Is("a.pods"));
  EXPECT_FALSE(peer.Is(""));
  EXPECT_FALSE(PeerInfo().Is(""));
}

}  // namespace
}  // namespace optcache::net
