#include "cache-node/serving/peer_links.h"

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "unit/cache-node/fake_visitors.h"
#include "unit/net/loop_fixture.h"

namespace optcache::node {
namespace {

using Silent = std::vector<wire::MemberId>;

// Node "a", member 1, with "b" and "c".
class PeerLinksTest : public testing::Test {
 protected:
  PeerLinksTest() {
    links_.SetMembers(1, {{.id = 1, .name = "a", .address = "unix:/nowhere/a"},
                          {.id = 2, .name = "b", .address = "unix:/nowhere/b"},
                          {.id = 3, .name = "c", .address = "unix:/nowhere/c"}});
    sidecar_.number = 1;
    from_b_.number = 2;
    from_b_.member = 2;
    to_b_.number = 3;
    for (FakeConnection* one : {&sidecar_, &from_b_, &to_b_})
      links_.OnOpen(*one);
  }
  Silent WatchFor(Duration time, const std::set<wire::MemberId>& awaited) {
    Silent silent;
    for (Duration passed{}; passed < time; passed += std::chrono::milliseconds(100)) {
      clock_.Advance(std::chrono::milliseconds(100));
      for (const wire::MemberId member : links_.Watch(awaited))
        silent.push_back(member);
    }
    return silent;
  }

  net::EventLoop loop_;
  ManualClock clock_;
  PeerLinks links_{loop_, clock_, {.name = "a"}, std::make_shared<DeafHandler>()};
  FakeConnection sidecar_{wire::Role::kSidecar, "10.0.0.1:1"};
  FakeConnection from_b_{wire::Role::kNode, "10.0.0.2:1"};
  FakeConnection to_b_{wire::Role::kNode, "unix:/nowhere/b"};
};

TEST_F(PeerLinksTest, AnAnswerGoesToTheConnectionThatAsked) {
  EXPECT_TRUE(links_.Reply(IdOf(sidecar_), 7, wire::SampleReply{}, nullptr));
  EXPECT_EQ(sidecar_.sent.size(), 1U);
  EXPECT_EQ(from_b_.sent.size(), 0U);
  links_.OnClosed(sidecar_);
  EXPECT_FALSE(links_.Reply(IdOf(sidecar_), 7, wire::SampleReply{}, nullptr));
}

TEST_F(PeerLinksTest, NothingIsSentToWhoIsNotReached) {
  EXPECT_FALSE(links_.Send(3, 7, wire::Lookup{}, nullptr)) << "it does not answer the dialing";
  EXPECT_FALSE(links_.Send(9, 7, wire::Lookup{}, nullptr)) << "it is no member";
}

TEST_F(PeerLinksTest, ANodeIsGoneWithTheLastOfItsConnections) {
  EXPECT_EQ(links_.OnClosed(sidecar_), std::nullopt);
  const auto dialed = links_.OnClosed(to_b_);
  ASSERT_TRUE(dialed);
  EXPECT_EQ(dialed->member, 2U) << "known by the address";
  EXPECT_TRUE(dialed->dialed);
  EXPECT_FALSE(dialed->gone);
  const auto last = links_.OnClosed(from_b_);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->member, 2U);
  EXPECT_FALSE(last->dialed);
  EXPECT_TRUE(last->gone);
}

TEST_F(PeerLinksTest, WhoSaysNothingIsSilentOnlyIfSomethingIsAwaited) {
  EXPECT_EQ(WatchFor(std::chrono::seconds(5), {}), Silent{});
  EXPECT_EQ(WatchFor(std::chrono::seconds(5), {2, 3}), Silent{2}) << "3 is not connected";
  from_b_.received = 100;
  WatchFor(std::chrono::milliseconds(100), {});
  EXPECT_EQ(WatchFor(std::chrono::seconds(5), {2}), Silent{2}) << "it had spoken";
}

TEST_F(PeerLinksTest, ANodeThatIsNoMemberHasNoPeers) {
  EXPECT_TRUE(links_.has_peers());
  links_.SetMembers(0, {{.id = 2, .name = "b", .address = "unix:/nowhere/b"}});
  EXPECT_FALSE(links_.has_peers());
}

TEST_F(PeerLinksTest, TheConnectionWithMostToTakeIsClosed) {
  links_.CloseFullest();
  EXPECT_FALSE(sidecar_.closed() || from_b_.closed() || to_b_.closed()) << "all is taken";
  sidecar_.queued = 5;
  from_b_.queued = 3;
  links_.CloseFullest();
  ASSERT_TRUE(sidecar_.closed());
  EXPECT_EQ(sidecar_.closed_with->code(), Code::kResourceExhausted);
  EXPECT_FALSE(from_b_.closed());
}

}  // namespace
}  // namespace optcache::node
