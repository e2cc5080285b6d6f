#include "wire/session.h"

#include <gtest/gtest.h>

namespace optcache::wire {
namespace {

TEST(Session, HelloOpensTheAcceptingSide) {
  Session session = Session::Accepting();
  EXPECT_FALSE(session.open());
  EXPECT_EQ(session.OnMessage(Hello{.role = Role::kNode}), Session::Event::kHello);
  EXPECT_TRUE(session.open());
  EXPECT_EQ(session.peer_role(), Role::kNode);
  EXPECT_EQ(session.version(), kMaxVersion);
}

TEST(Session, WelcomeOpensTheDialingSide) {
  Session session = Session::Dialing(Role::kSidecar);
  EXPECT_EQ(session.OnMessage(Welcome{.version = 1}), Session::Event::kWelcome);
  EXPECT_TRUE(session.open());
  EXPECT_EQ(session.OnMessage(SampleReply{}), Session::Event::kMessage);
}

TEST(Session, NothingComesBeforeHello) {
  Session session = Session::Accepting();
  const auto event = session.OnMessage(Get{});
  ASSERT_FALSE(event.has_value());
  EXPECT_EQ(event.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(event.error().message(), "Get came, but a connection begins with Hello");
}

TEST(Session, NothingButWelcomeOrRefusalAnswersHello) {
  Session session = Session::Dialing(Role::kNode);
  EXPECT_FALSE(session.OnMessage(SampleReply{}).has_value());
  EXPECT_EQ(session.OnMessage(Refusal{}), Session::Event::kRefusal);
  EXPECT_FALSE(session.open());
}

TEST(Session, ThereIsNoSecondHello) {
  Session session = Session::Accepting();
  ASSERT_TRUE(session.OnMessage(Hello{}).has_value());
  EXPECT_FALSE(session.OnMessage(Hello{}).has_value());
}

TEST(Session, ASidecarMayNotSpeakAsANode) {
  Session session = Session::Accepting();
  ASSERT_TRUE(session.OnMessage(Hello{.role = Role::kSidecar}).has_value());
  for (const Message& message : {Message(Holding{}), Message(Lookup{}), Message(Push{}),
                                 Message(Announce{}), Message(SampleReply{})}) {
    EXPECT_FALSE(session.OnMessage(message).has_value()) << message.index();
  }
  for (const Message& message : {Message(Get{}), Message(Put{}), Message(LeaseUpdate{}),
                                 Message(StreamAttach{}), Message(StreamProgress{})}) {
    EXPECT_EQ(session.OnMessage(message), Session::Event::kMessage) << message.index();
  }
}

TEST(Session, ANodeMayNotSpeakAsASidecar) {
  Session session = Session::Accepting();
  ASSERT_TRUE(session.OnMessage(Hello{.role = Role::kNode}).has_value());
  EXPECT_FALSE(session.OnMessage(StreamAttach{}).has_value());
  EXPECT_FALSE(session.OnMessage(Put{}).has_value());
  EXPECT_EQ(session.OnMessage(Push{}), Session::Event::kMessage);
  EXPECT_EQ(session.OnMessage(Holding{}), Session::Event::kMessage);
}

TEST(Session, ASidecarIsOnlyAnswered) {
  Session session = Session::Dialing(Role::kSidecar);
  ASSERT_TRUE(session.OnMessage(Welcome{}).has_value());
  EXPECT_FALSE(session.OnMessage(Get{}).has_value());
  EXPECT_EQ(session.OnMessage(StoreReply{}), Session::Event::kMessage);
  EXPECT_EQ(session.OnMessage(Refusal{}), Session::Event::kRefusal);
}

TEST(Session, TheHighestCommonVersionIsChosen) {
  EXPECT_EQ(NegotiateVersion(Hello{.min_version = 1, .max_version = 9}), kMaxVersion);
  EXPECT_EQ(NegotiateVersion(Hello{.min_version = 0, .max_version = kMinVersion}), kMinVersion);
}

TEST(Session, NoCommonVersionIsARefusalThatNamesBothRanges) {
  const auto version = NegotiateVersion(Hello{.min_version = 7, .max_version = 9, .name = "pod"});
  ASSERT_FALSE(version.has_value());
  EXPECT_EQ(version.error().message(),
            "'pod' speaks versions 7 to 9, this node 1 to 6; update the older of the two");
  EXPECT_FALSE(NegotiateVersion(Hello{.min_version = 2, .max_version = 1}).has_value());
}

TEST(Session, AWelcomeToAnUnofferedVersionIsRefused) {
  Session session = Session::Dialing(Role::kNode);
  EXPECT_FALSE(session.OnMessage(Welcome{.version = kMaxVersion + 1}).has_value());
}

TEST(Session, WhatWasOfferedDecidesWhichWelcomeIsTaken) {
  Session newer = Session::Dialing(Role::kSidecar, {.min = 1, .max = 2});
  EXPECT_EQ(newer.OnMessage(Welcome{.version = 2}), Session::Event::kWelcome);
  EXPECT_EQ(newer.version(), 2);
  Session older = Session::Dialing(Role::kSidecar, {.min = 1, .max = 1});
  EXPECT_FALSE(older.OnMessage(Welcome{.version = 2}).has_value());
}

TEST(Session, OnlyASidecarDemandsAndOnlyANodeShares) {
  Session node = Session::Accepting();
  ASSERT_EQ(node.OnMessage(Hello{.role = Role::kSidecar}), Session::Event::kHello);
  EXPECT_EQ(node.OnMessage(StoreDemand{.dataset = 1}), Session::Event::kMessage);
  EXPECT_FALSE(node.OnMessage(StoreShare{.dataset = 1}).has_value());
  Session sidecar = Session::Dialing(Role::kSidecar);
  ASSERT_EQ(sidecar.OnMessage(Welcome{}), Session::Event::kWelcome);
  EXPECT_EQ(sidecar.OnMessage(StoreShare{.dataset = 1}), Session::Event::kMessage);
  EXPECT_FALSE(sidecar.OnMessage(StoreDemand{.dataset = 1}).has_value());
  Session peer = Session::Accepting();
  ASSERT_EQ(peer.OnMessage(Hello{.role = Role::kNode, .member = 3}), Session::Event::kHello);
  EXPECT_FALSE(peer.OnMessage(StoreDemand{.dataset = 1}).has_value());
}

TEST(Session, AnAcceptingSideChoosesWithinItsOwnRange) {
  Session session = Session::Accepting({.min = 2, .max = 4});
  EXPECT_EQ(session.OnMessage(Hello{.min_version = 1, .max_version = 3}), Session::Event::kHello);
  EXPECT_EQ(session.version(), 3);
  EXPECT_FALSE(Session::Accepting({.min = 2, .max = 4}).OnMessage(Hello{.max_version = 1}));
}

}  // namespace
}  // namespace optcache::wire
