// Decisions about who may connect that take their time.

#include <gtest/gtest.h>

#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

class AuthorizeTest : public testing::Test {
 protected:
  // A server whose decisions the test takes.
  void Start(ServerOptions options = {}) {
    options.authorize = [this](const wire::Hello& hello, const PeerInfo&,
                               std::function<void(Status)> decide) {
      asked.push_back(hello.name);
      decisions.push_back(std::move(decide));
    };
    auto listening = Listen(loop, "127.0.0.1:0", std::move(options), node);
    ASSERT_TRUE(listening.has_value());
    server = std::move(*listening);
  }
  std::shared_ptr<Connection> DialAs(const std::string& name,
                                     const std::shared_ptr<Recorder>& handler) {
    return Dial(loop, server->address(), Patient({.name = name, .token = "secret"}), handler);
  }
  void RunUntilAsked(std::size_t count) {
    RunUntil(loop, [&] { return decisions.size() == count; });
  }
  double Refused(std::string_view reason) const {
    double found = -1;
    server->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == "optcache_net_refused_connections_total" && labels.back().second == reason) {
            found = value;
          }
        });
    return found;
  }
  // Lets the loop do all that it has to do at once.
  void Settle() {
    for (int i = 0; i < 20; ++i) {
      loop.Post([this] { loop.Stop(); });
      loop.Run();
    }
  }

  EventLoop loop;
  std::shared_ptr<Recorder> node = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> peer = std::make_shared<Recorder>();
  std::vector<std::string> asked;
  std::vector<std::function<void(Status)>> decisions;
  std::unique_ptr<Server> server;
};

TEST_F(AuthorizeTest, AConnectionOpensWhenItIsDecided) {
  Start();
  const auto connection = DialAs("pod", peer);
  RunUntilAsked(1);
  Settle();
  EXPECT_EQ(peer->opened, 0);
  decisions[0](OkStatus());
  RunUntil(loop, [&] { return peer->opened == 1 && node->opened == 1; });
  connection->Send(7, wire::LeaseUpdate{});
  RunUntil(loop, [&] { return node->messages.size() == 1; });
}

TEST_F(AuthorizeTest, ARefusalIsASentenceAndCounted) {
  Start();
  const auto denied = DialAs("pod", peer);
  RunUntilAsked(1);
  decisions[0](Status(Code::kPermissionDenied, "the token has expired"));
  RunUntil(loop, [&] { return peer->closed.size() == 1; });
  EXPECT_EQ(peer->closed[0].message(), "the peer refused: the token has expired");
  EXPECT_EQ(Refused("denied"), 1);
  const auto unchecked = DialAs("pod", peer);
  RunUntilAsked(2);
  decisions[1](Status(Code::kUnavailable, "the API server does not answer"));
  RunUntil(loop, [&] { return peer->closed.size() == 2; });
  EXPECT_EQ(peer->closed[1].code(), Code::kUnavailable);
  EXPECT_EQ(Refused("unchecked"), 1);
  EXPECT_EQ(node->opened, 0);
}

TEST_F(AuthorizeTest, WhatCameWithHelloIsReadAfterTheDecision) {
  Start();
  const RawClient client(server->port());
  client.Send(wire::Hello{.name = "pod"});
  client.Send(wire::LeaseUpdate{.dataset = 5});
  RunUntilAsked(1);
  Settle();
  EXPECT_TRUE(node->messages.empty());
  decisions[0](OkStatus());
  RunUntil(loop, [&] { return node->messages.size() == 1; });
  EXPECT_EQ(node->messages[0].second, wire::Message(wire::LeaseUpdate{.dataset = 5}));
}

TEST_F(AuthorizeTest, WithoutADecisionInTimeThePeerIsRefused) {
  Start({.authorize_deadline = milliseconds(20)});
  const auto connection = DialAs("pod", peer);
  RunUntil(loop, [&] { return peer->closed.size() == 1; });
  EXPECT_EQ(peer->closed[0].code(), Code::kDeadlineExceeded);
  EXPECT_EQ(Refused("late"), 1);
  decisions.at(0)(OkStatus());  // Too late: no effect.
  Settle();
  EXPECT_EQ(node->opened, 0);
}

TEST_F(AuthorizeTest, OnlySoManyMayWait) {
  Start({.max_undecided = 2});
  const auto waiting = std::make_shared<Recorder>();
  const auto first = DialAs("a", waiting);
  const auto second = DialAs("b", waiting);
  RunUntilAsked(2);
  const auto third = DialAs("c", peer);
  RunUntil(loop, [&] { return peer->closed.size() == 1; });
  EXPECT_EQ(peer->closed[0].code(), Code::kResourceExhausted);
  EXPECT_EQ(Refused("busy"), 1);
  decisions[0](OkStatus());
  const auto fourth = DialAs("d", peer);
  RunUntilAsked(3);
  EXPECT_EQ(asked.back(), "d");
}

TEST_F(AuthorizeTest, OnlyTheFirstDecisionCounts) {
  Start();
  const auto connection = DialAs("pod", peer);
  RunUntilAsked(1);
  decisions[0](OkStatus());
  decisions[0](Status(Code::kPermissionDenied, "no"));
  RunUntil(loop, [&] { return peer->opened == 1; });
  Settle();
  EXPECT_TRUE(peer->closed.empty());
  EXPECT_EQ(Refused("denied"), 0);
}

TEST_F(AuthorizeTest, ADecisionAboutAPeerThatWasClosedDoesNothing) {
  Start();
  const auto connection = DialAs("pod", peer);
  RunUntilAsked(1);
  server.reset();
  decisions[0](OkStatus());
  RunUntil(loop, [&] { return peer->closed.size() == 1; });
  decisions[0](OkStatus());
  EXPECT_EQ(node->opened, 0);
  EXPECT_TRUE(node->closed.empty());
}

TEST_F(AuthorizeTest, StopDoesNotWaitForDecisions) {
  Start();
  const auto connection = DialAs("pod", peer);
  RunUntilAsked(1);
  bool stopped = false;
  server->Stop(kPatience, [&] { stopped = true; });
  RunUntil(loop, [&] { return stopped && peer->closed.size() == 1; });
  EXPECT_EQ(node->opened, 0);
}

}  // namespace
}  // namespace optcache::net
