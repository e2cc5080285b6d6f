// Peers of other releases: what Hello and Welcome agree on, over real connections.

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/hex.h"
#include "support/source_dir.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

class VersionsTest : public testing::Test {
 protected:
  void Start(wire::VersionRange versions) {
    auto listening = Listen(loop, "127.0.0.1:0", {.name = "node-1", .versions = versions}, node);
    ASSERT_TRUE(listening.has_value()) << listening.error().message();
    server = std::move(*listening);
  }
  std::shared_ptr<Connection> DialSpeaking(wire::VersionRange versions) {
    return Dial(loop, server->address(),
                Patient({.min_version = versions.min, .max_version = versions.max, .name = "pod"}),
                pod);
  }
  double RefusedForVersion() const {
    double found = 0;
    server->VisitCounters([&](MetricKind, std::string_view name, const MetricLabels& labels,
                              double value) {
      if (name == "optcache_net_refused_connections_total" && labels.back().second == "version") {
        found = value;
      }
    });
    return found;
  }
  // Both ends can talk.
  void ExpectOpen(Connection& connection) {
    RunUntil(loop, [&] { return pod->opened == 1 && node->opened == 1; });
    connection.Send(3, wire::LeaseUpdate{.dataset = 5});
    RunUntil(loop, [&] { return node->messages.size() == 1; });
  }

  EventLoop loop;
  std::shared_ptr<Recorder> node = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> pod = std::make_shared<Recorder>();
  std::unique_ptr<Server> server;
};

TEST_F(VersionsTest, AnOlderSidecarTalksToANewerNode) {
  Start({.min = 1, .max = 2});
  const auto connection = DialSpeaking({.min = 1, .max = 1});
  ExpectOpen(*connection);
}

TEST_F(VersionsTest, ANewerSidecarTalksToAnOlderNode) {
  Start({.min = 1, .max = 1});
  const auto connection = DialSpeaking({.min = 1, .max = 2});
  ExpectOpen(*connection);
}

TEST_F(VersionsTest, WhatAnOlderNodeDoesNotKnowIsNotSent) {
  Start({.min = 1, .max = 2});
  const auto connection = DialSpeaking({.min = 1, .max = 3});
  RunUntil(loop, [&] { return pod->opened == 1 && node->opened == 1; });
  connection->Send(0, wire::StreamTrace{.stream = 5});
  connection->Send(0, wire::StreamPassEnd{.stream = 5});
  connection->Send(0, wire::StreamOrder{.stream = 5});
  RunUntil(loop, [&] { return node->messages.size() == 1; });
  EXPECT_TRUE(std::holds_alternative<wire::StreamOrder>(node->messages[0].second));
}

TEST_F(VersionsTest, AnOlderNodeIsToldThatAStoreAnswersWhereAnObjectHasChanged) {
  Start({.min = 1, .max = 4});
  const auto connection = DialSpeaking({.min = 1, .max = 5});
  RunUntil(loop, [&] { return pod->opened == 1 && node->opened == 1; });
  connection->Send(
      0, wire::StoreHealth{.dataset = 5, .state = wire::StoreState::kChanged, .cause = "a.jpg"});
  RunUntil(loop, [&] { return node->messages.size() == 1; });
  EXPECT_EQ(std::get<wire::StoreHealth>(node->messages[0].second),
            (wire::StoreHealth{.dataset = 5, .state = wire::StoreState::kAnswers}));
}

TEST_F(VersionsTest, ANodeWithoutTheMessageIsToldNothingOfStores) {
  Start({.min = 1, .max = 2});
  const auto connection = DialSpeaking({.min = 1, .max = 5});
  RunUntil(loop, [&] { return pod->opened == 1 && node->opened == 1; });
  connection->Send(0, wire::StoreHealth{.dataset = 5, .state = wire::StoreState::kChanged});
  connection->Send(0, wire::StreamOrder{.stream = 5});
  RunUntil(loop, [&] { return node->messages.size() == 1; });
  EXPECT_TRUE(std::holds_alternative<wire::StreamOrder>(node->messages[0].second));
}

TEST_F(VersionsTest, NeitherSideOfAnOlderConnectionIsToldOfRates) {
  Start({.min = 1, .max = 5});
  const auto connection = DialSpeaking({.min = 1, .max = 6});
  RunUntil(loop, [&] { return pod->opened == 1 && node->opened == 1; });
  connection->Send(0, wire::StoreDemand{.dataset = 5});
  connection->Send(0, wire::Savings{.dataset = 5});
  RunUntil(loop, [&] { return node->messages.size() == 1; });
  EXPECT_TRUE(std::holds_alternative<wire::Savings>(node->messages[0].second));
}

// What a peer of version 1 says, as it was recorded.
TEST_F(VersionsTest, ANewerNodeChoosesTheVersionOfARecordedHello) {
  Start({.min = 1, .max = 7});
  const auto hex = ReadFile(InRepository("tests/golden/wire/hello.hex"), 1_MiB);
  ASSERT_TRUE(hex.has_value()) << hex.error().message();
  const std::vector<std::byte> hello = Unhex(*hex);
  const RawClient client(server->port());
  client.Send(hello);
  RunUntil(loop, [&] { return node->opened == 1; });
  server.reset();
  RunUntil(loop, [&] { return node->closed.size() == 1; });
  const auto answer = wire::DecodeFrame(client.ReadAll());
  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_EQ(std::get<wire::Welcome>(std::get<wire::Frame>(*answer).message).version, 1);
}

TEST_F(VersionsTest, WithoutACommonVersionBothSidesSayWhy) {
  Start({.min = 2, .max = 3});
  const auto connection = DialSpeaking({.min = 1, .max = 1});
  RunUntil(loop, [&] { return pod->closed.size() == 1; });
  EXPECT_EQ(pod->closed[0].code(), Code::kInvalidArgument);
  EXPECT_EQ(pod->closed[0].message(),
            "the peer refused: 'pod' speaks versions 1 to 1, this node 2 to 3; update the older of "
            "the two");
  EXPECT_EQ(RefusedForVersion(), 1);
  EXPECT_EQ(node->opened, 0);
}

}  // namespace
}  // namespace optcache::net
