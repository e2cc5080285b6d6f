// What other nodes are asked for, and what becomes of it when they are gone.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using wire::Answer;
using wire::GetMode;

constexpr StreamId kPeersStream = 42;

LoopbackCluster::Options SamplesOn(std::size_t nodes, std::size_t samples,
                                   std::uint32_t size = 100) {
  return {.nodes = nodes, .sizes = std::vector<std::uint32_t>(samples, size)};
}

SampleId WithItsHomeAtNode0() {
  const cache::HomeMap homes(0, {1, 2});
  SampleId id = 0;
  while (homes.Home(id) != 1)
    ++id;
  return id;
}

// No time passes: neither what was asked of it nor what it was to look up is waited for.
TEST(DatasetPeers, WhatAPeerThatIsGoneWasAskedIsAMissAtOnce) {
  LoopbackCluster cluster(SamplesOn(3, 10));
  cluster.Plan(kPeersStream, 0, 3, {.keep = true, .keep_at = 2});
  EXPECT_TRUE(cluster.Read(1, kPeersStream, {0, 3, 7}));
  for (SampleId id = 0; id < 10; ++id)
    cluster.Ask(0, kPeersStream, {{0, 20 + id, id}}, GetMode::kUrgent);
  cluster.Kill(1);
  cluster.Kill(2);
  EXPECT_EQ(cluster.replies(0).size(), 10U);
  for (const auto& reply : cluster.replies(0)) {
    const Answer answer = std::get<wire::SampleReply>(reply.message).answer;
    EXPECT_TRUE(answer == Answer::kMissKeep || answer == Answer::kMissDrop);
  }
  EXPECT_GT(cluster.cache(0).counters().peer_losses, 0U);
  EXPECT_EQ(cluster.cache(0).counters().peer_timeouts, 0U);
}

// It has started again, and its home does not know that yet.
TEST(DatasetPeers, APeerThatDoesNotKnowTheDatasetIsNotAskedAgain) {
  LoopbackCluster cluster(SamplesOn(2, 100));
  const SampleId id = WithItsHomeAtNode0();
  cluster.cache(0).OnHolding(2, {.gained = {id}});
  cluster.Ask(0, kPeersStream, {{0, id, id}}, GetMode::kUrgent);
  EXPECT_TRUE(cluster.replies(0).empty());
  for (std::uint32_t request = 0; request < 10; ++request)
    cluster.cache(0).OnPeerReply(request, {.answer = Answer::kMissDrop}, nullptr, cluster.now());
  ASSERT_EQ(cluster.replies(0).size(), 1U);
}

// A sample of hundreds of megabytes on a slow link: what node 0 does with it after 2 s.
class DatasetPeersLate : public testing::Test {
 protected:
  static constexpr std::uint32_t kBytes = 100;

  DatasetPeersLate() {
    cache().OnHolding(2, {.gained = {big_}});
    Ask();
    while (!buffer_ && request_ < 100)
      buffer_ = cache().ReceiveFromPeer(++request_, 0, kBytes);
    EXPECT_TRUE(buffer_);
    const std::string bytes = BytesOf(big_, kBytes);
    std::ranges::copy(AsBytes(bytes), buffer_->writable().begin());
  }

  static LoopbackCluster::Options Scene() {
    auto options = SamplesOn(2, 100, kBytes);
    options.capacity = 2 * kBytes;
    return options;
  }
  DatasetCache& cache() { return cluster_.cache(0); }
  void Ask() { cluster_.Ask(0, kPeersStream, {{0, 7, big_}}, GetMode::kUrgent); }
  void Pass(Duration time) {
    cluster_.Advance(time);
    cache().Tick(cluster_.now());
  }
  void Arrive() {
    cache().OnPeerReply(request_, {.answer = Answer::kHere, .crc = 5}, buffer_, cluster_.now());
    buffer_.reset();
  }
  // Of the last reply, which there must be.
  Answer TakeAnswer() {
    auto& replies = cluster_.replies(0);
    EXPECT_EQ(replies.size(), 1U);
    const Answer answer = std::get<wire::SampleReply>(replies.at(0).message).answer;
    payload_ = replies.at(0).payload;
    replies.clear();
    return answer;
  }

  const SampleId big_ = WithItsHomeAtNode0();
  LoopbackCluster cluster_{Scene()};
  std::uint32_t request_ = 0;
  std::shared_ptr<cache::SampleBytes> buffer_;
  std::string payload_;
};

TEST_F(DatasetPeersLate, BytesThatAreComingAtTheDeadlineAreOnTheirWayAndThenAHit) {
  Pass(std::chrono::seconds(3));
  EXPECT_EQ(TakeAnswer(), Answer::kOnItsWay);
  for (int i = 0; i < 6; ++i) {
    Pass(std::chrono::seconds(1));
    Ask();
    EXPECT_EQ(TakeAnswer(), Answer::kOnItsWay);
  }
  Arrive();
  Ask();
  EXPECT_EQ(TakeAnswer(), Answer::kPeer);
  EXPECT_EQ(payload_, BytesOf(big_, kBytes));
  EXPECT_EQ(cache().counters().hits_peer, 1U);
  EXPECT_EQ(cache().counters().misses, 0U);
  EXPECT_EQ(cache().counters().peer_timeouts, 0U);
  Pass(std::chrono::seconds(3));
  EXPECT_EQ(cache().relay_bytes(), 0U);
}

// Two ranks of one machine that read the same.
TEST_F(DatasetPeersLate, BytesThatComeAfterAllAreForAllWhoAskForThem) {
  Pass(std::chrono::seconds(3));
  cluster_.replies(0).clear();
  Arrive();
  for (int i = 0; i < 2; ++i) {
    Ask();
    EXPECT_EQ(TakeAnswer(), Answer::kPeer);
  }
}

TEST_F(DatasetPeersLate, BytesThatNoReaderAsksForAgainLeaveTheReserveToOthers) {
  Pass(std::chrono::seconds(3));
  EXPECT_EQ(cache().relay_bytes(), kBytes);
  Pass(std::chrono::seconds(3));
  EXPECT_EQ(cache().relay_bytes(), 0U);
  Arrive();
  EXPECT_EQ(cache().relay_bytes(), 0U);
}

TEST_F(DatasetPeersLate, BytesThatComeAfterAllAreForgottenIfNoReaderAsksAgain) {
  Pass(std::chrono::seconds(3));
  Arrive();
  EXPECT_EQ(cache().relay_bytes(), kBytes);
  Pass(std::chrono::seconds(3));
  EXPECT_EQ(cache().relay_bytes(), 0U);
}

TEST_F(DatasetPeersLate, WhatThePlanKeepsIsHereOnceItHasCome) {
  cluster_.Plan(kPeersStream, 0, 7, {.keep = true, .keep_at = 1});
  Pass(std::chrono::seconds(3));
  Arrive();
  cluster_.replies(0).clear();
  Ask();
  EXPECT_EQ(TakeAnswer(), Answer::kHere);
}

TEST_F(DatasetPeersLate, AConnectionThatEndsEndsTheWait) {
  Pass(std::chrono::seconds(3));
  EXPECT_EQ(TakeAnswer(), Answer::kOnItsWay);
  std::vector<wire::MemberId> awaited;
  cache().VisitAwaited([&](wire::MemberId member) { awaited.push_back(member); });
  EXPECT_EQ(awaited, std::vector<wire::MemberId>{2});
  cluster_.Kill(1);
  EXPECT_EQ(cache().relay_bytes(), 0U);
  Ask();
  const Answer answer = TakeAnswer();
  EXPECT_TRUE(answer == Answer::kMissKeep || answer == Answer::kMissDrop);
}

TEST_F(DatasetPeersLate, BytesThatCameWrongAreAskedForAgain) {
  Pass(std::chrono::seconds(3));
  cluster_.replies(0).clear();
  cache().OnPeerReply(request_, {.answer = Answer::kHere}, nullptr, cluster_.now());
  EXPECT_EQ(cache().relay_bytes(), 0U);
  Ask();
  const std::uint32_t wrong = request_;
  while (!cache().ReceiveFromPeer(++request_, 0, kBytes) && request_ < wrong + 100) {
  }
  EXPECT_LT(request_, wrong + 100);
  EXPECT_TRUE(cluster_.replies(0).empty());
}

TEST(DatasetPeers, AnAnswerThatHasNotBegunAtTheDeadlineIsAMiss) {
  LoopbackCluster cluster(SamplesOn(2, 100));
  const SampleId id = WithItsHomeAtNode0();
  cluster.cache(0).OnHolding(2, {.gained = {id}});
  cluster.Ask(0, kPeersStream, {{0, 7, id}}, GetMode::kUrgent);
  cluster.Advance(std::chrono::seconds(3));
  cluster.cache(0).Tick(cluster.now());
  ASSERT_EQ(cluster.replies(0).size(), 1U);
  const Answer answer = std::get<wire::SampleReply>(cluster.replies(0)[0].message).answer;
  EXPECT_TRUE(answer == Answer::kMissKeep || answer == Answer::kMissDrop);
  EXPECT_EQ(cluster.cache(0).counters().peer_timeouts, 1U);
}

// All of them may lie at one peer, whose connection would be closed.
TEST(DatasetPeers, ReadsAtPeersWaitWhereTheReserveIsLargerThanWhatAConnectionQueues) {
  constexpr SampleId kMany = 10;
  auto options = SamplesOn(2, kMany, 300U << 20U);
  options.reserve = 2_GiB;
  LoopbackCluster cluster(options);
  wire::Holding held;
  std::vector<wire::ReadItem> items;
  for (SampleId id = 0; id < kMany; ++id) {
    held.gained.push_back(id);
    items.push_back({0, id, id});
  }
  cluster.cache(0).OnHolding(2, held);
  cluster.Ask(0, kPeersStream, items);
  EXPECT_EQ(cluster.cache(0).relay_bytes(), 300_MiB);
}

}  // namespace
}  // namespace optcache::node
