#include "cache-node/serving/peer_watch.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

using std::chrono::milliseconds;
using Members = std::vector<wire::MemberId>;

constexpr wire::MemberId kPeer = 7;

// Looks ten times a second at one peer.
class PeerWatchTest : public testing::Test {
 protected:
  PeerWatch::Found Look(Duration after = milliseconds(100)) {
    now_ += after;
    return watch_.Look({{peer_}}, now_);
  }
  // How long until it is found silent; at most ten seconds.
  Duration TimeUntilSilent() {
    const MonotonicTime begin = now_;
    while (!watch_.IsSilent(kPeer) && now_ - begin < std::chrono::seconds(10))
      asked_ += static_cast<int>(Look().to_ask.size());
    return now_ - begin;
  }

  PeerWatch watch_;
  PeerWatch::Peer peer_{.member = kPeer, .received_bytes = 100};
  MonotonicTime now_{std::chrono::hours(1)};
  int asked_ = 0;
};

TEST_F(PeerWatchTest, WhoIsAwaitedAndSaysNothingIsAskedOnceAndThenSilent) {
  Look();
  peer_.awaited = true;
  EXPECT_LE(TimeUntilSilent(), milliseconds(1800));
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(watch_.silent(), 1U);
}

TEST_F(PeerWatchTest, NobodyIsSilentOfWhomNothingIsAwaited) {
  EXPECT_EQ(TimeUntilSilent(), std::chrono::seconds(10));
  EXPECT_EQ(asked_, 0);
}

TEST_F(PeerWatchTest, WhoAnswersIsNotSilent) {
  peer_.awaited = true;
  for (int i = 0; i < 200; ++i)
    peer_.received_bytes += Look().to_ask.empty() ? 0U : 9U;
  EXPECT_FALSE(watch_.IsSilent(kPeer));
}

// What comes of a large sample counts, and need not be whole.
TEST_F(PeerWatchTest, WhoSendsIsNotAsked) {
  peer_.awaited = true;
  for (int i = 0; i < 200; ++i) {
    ++peer_.received_bytes;
    EXPECT_TRUE(Look().to_ask.empty());
  }
}

TEST_F(PeerWatchTest, ASilentOneIsAskedAgainAndIsThereWhenItSpeaks) {
  Look();
  peer_.awaited = true;
  TimeUntilSilent();
  peer_.awaited = false;  // who is silent is asked for nothing
  for (int i = 0; i < 30; ++i)
    asked_ += static_cast<int>(Look().to_ask.size());
  EXPECT_EQ(asked_, 4);
  EXPECT_TRUE(watch_.IsSilent(kPeer));
  ++peer_.received_bytes;
  EXPECT_EQ(Look().spoke, Members{kPeer});
  EXPECT_FALSE(watch_.IsSilent(kPeer));
}

// Then its answers lie unread.
TEST_F(PeerWatchTest, TheTimeInWhichThisNodeDidNotRunDoesNotCount) {
  peer_.awaited = true;
  while (Look().to_ask.empty()) {
  }
  EXPECT_TRUE(Look(std::chrono::seconds(5)).fell_silent.empty());
  ++peer_.received_bytes;
  EXPECT_TRUE(Look().fell_silent.empty());
}

TEST_F(PeerWatchTest, WhoIsNotConnectedAnyMoreIsForgotten) {
  Look();
  peer_.awaited = true;
  TimeUntilSilent();
  now_ += milliseconds(100);
  watch_.Look({}, now_);
  EXPECT_FALSE(watch_.IsSilent(kPeer));
}

}  // namespace
}  // namespace optcache::node
