#include "cache-node/trust/authorizer.h"

#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "cache-node/control/stream_table.h"
#include "coordination/codec.h"
#include "support/manual_clock.h"
#include "unit/cache-node/fake_visitors.h"
#include "wire/stream_id.h"

namespace optcache::node {
namespace {

class AuthorizerTest : public testing::Test {
 protected:
  Status Authorize(const wire::Hello& hello, const std::string& address = "10.0.0.1:5000") {
    std::optional<Status> decision;
    door_.Authorize(hello, {.address = address},
                    [&](Status status) { decision = std::move(status); });
    return decision.value_or(Status(Code::kInternal, "no decision"));
  }
  Status AuthorizeNode(const std::string& name, std::vector<std::string> certificate) {
    std::optional<Status> decision;
    door_.Authorize({.role = wire::Role::kNode, .name = name},
                    {.address = "10.0.0.9:1", .dns_names = std::move(certificate)},
                    [&](Status status) { decision = std::move(status); });
    return decision.value_or(Status(Code::kInternal, "no decision"));
  }
  // A pod that was let in.
  void Enter(ClientId client, FakeConnection& connection, const std::string& ns,
             const std::string& claims = "") {
    const Status status =
        Authorize({.name = ns + "/train-0", .token = claims + ns + " train-0 machine-7"},
                  connection.address());
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(door_.OnOpen(client, connection).ok());
  }
  static wire::StreamAttach Attach(const std::string& ns, int number = 5,
                                   const std::string& dataset = "vision/birds") {
    const std::string name = ns + "/job-2/birds/train" + std::to_string(number);
    return {.dataset = dataset == "vision/birds" ? 1U : 3U,
            .dataset_name = dataset,
            .stream = wire::StreamIdOf(name, 0),
            .stream_name = name};
  }
  void EndStream(ClientId client, int number) {
    const StreamId stream = Attach("vision", number).stream;
    EXPECT_TRUE(
        door_.AuthorizeMessage(client, wire::StreamProgress{.stream = stream, .ended = true}).ok());
  }
  // What has changed, as "+STREAM" or "-STREAM".
  std::vector<std::string> Changes() {
    std::vector<std::string> changes;
    for (const JudgedAnew& judged : door_.JudgeAnew())
      changes.push_back((judged.granted ? "+" : "-") + judged.attach.stream_name);
    return changes;
  }
  // As the node does it, ten times a second.
  void Pass(Duration time) {
    clock_.Advance(time);
    door_.CheckTokens();
  }

  ManualClock clock_;
  InstantReviewer reviewer_;
  TokenCheck tokens_{reviewer_, clock_};
  RefusalCounters refusal_counters_{clock_};
  coordination::DesiredState state_{
      .datasets = {{.name = "vision/birds", .key = 1, .namespaces = {"vision", "speech"}},
                   {.name = "vision/secret", .key = 2, .namespaces = {"vision"}}}};
  std::map<wire::DatasetKey, std::string> held_ = {{1, "vision/birds"}, {2, "vision/secret"}};
  Authorizer door_{tokens_,
                   refusal_counters_,
                   clock_,
                   [this]() -> const coordination::DesiredState& { return state_; },
                   {.limits = {.connections = 2, .streams = 2, .leases = 10, .queued_bytes = 100},
                    .machine = "machine-7",
                    .held = [this](wire::DatasetKey key) { return held_[key]; }}};
  FakeConnection a_{wire::Role::kSidecar, "10.0.0.1:1"};
  FakeConnection b_{wire::Role::kSidecar, "10.0.0.2:1"};
};

TEST_F(AuthorizerTest, APodEntersUnderItsOwnName) {
  Enter(1, a_, "vision");
  ASSERT_NE(door_.Find(1), nullptr);
  EXPECT_EQ(NameOf(*door_.Find(1)), "vision/train-0");
}

TEST_F(AuthorizerTest, ABadTokenDoesNot) {
  EXPECT_EQ(Authorize({.name = "vision/train-0", .token = "forged"}).code(),
            Code::kPermissionDenied);
  EXPECT_EQ(Authorize({.name = "vision/train-0"}).code(), Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kToken), 2U);
}

TEST_F(AuthorizerTest, NorAPodUnderAnothersName) {
  EXPECT_EQ(Authorize({.name = "vision/train-1", .token = "vision train-0 machine-7"}).code(),
            Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kPod), 1U);
}

TEST_F(AuthorizerTest, NorATokenThatWasCarriedToAnotherMachine) {
  EXPECT_EQ(Authorize({.name = "vision/train-0", .token = "vision train-0 machine-8"}).code(),
            Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kPod), 1U);
}

TEST_F(AuthorizerTest, AnInvitationIsForTheAddressThatItWasMadeFor) {
  ASSERT_TRUE(
      Authorize({.name = "vision/train-0", .token = "vision train-0 machine-7"}, "10.0.0.1:1")
          .ok());
  EXPECT_FALSE(door_.OnOpen(2, b_).ok());
  EXPECT_TRUE(door_.OnOpen(1, a_).ok());
  EXPECT_FALSE(door_.OnOpen(3, a_).ok()) << "and for one connection";
}

TEST_F(AuthorizerTest, ANodeIsKnownByItsCertificate) {
  FakeConnection node(wire::Role::kNode, "10.0.0.9:1");
  EXPECT_TRUE(AuthorizeNode("node-b", {"optcache-node", "node-b"}).ok());
  EXPECT_TRUE(door_.OnOpen(1, node).ok());
  EXPECT_EQ(door_.Find(1), nullptr);
  EXPECT_TRUE(
      door_.AuthorizeMessage(1, wire::Get{.dataset = 2, .mode = wire::GetMode::kPeer}).ok());
}

TEST_F(AuthorizerTest, ANodeDoesNotSpeakForAnother) {
  EXPECT_EQ(AuthorizeNode("node-a", {"optcache-node", "node-b"}).code(), Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kCertificate), 1U);
}

TEST_F(AuthorizerTest, ReadsAndPutsOnlyOfDatasetsThatAreShared) {
  Enter(1, a_, "speech");
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::Get{.dataset = 1}).ok());
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::Put{.dataset = 1}).ok());
  const std::vector<wire::Message> forbidden = {wire::Get{.dataset = 2}, wire::Put{.dataset = 2},
                                                wire::LeaseUpdate{.dataset = 2}};
  for (const wire::Message& message : forbidden)
    EXPECT_EQ(door_.AuthorizeMessage(1, message).code(), Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kNamespace), 3U);
}

TEST_F(AuthorizerTest, WhoMayReadADatasetTellsWhatWasSavedOfIt) {
  Enter(1, a_, "speech");
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::Savings{.dataset = 1}).ok()) << "a borrower, too";
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::Savings{.dataset = 2}).code(), Code::kPermissionDenied);
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::Savings{.dataset = 9}).code(), Code::kNotFound);
}

TEST_F(AuthorizerTest, WhoMayReadADatasetTellsWhatItWantsOfItsStore) {
  Enter(1, a_, "speech");
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::StoreDemand{.dataset = 1}).ok()) << "a borrower, too";
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::StoreDemand{.dataset = 2}).code(),
            Code::kPermissionDenied);
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::StoreDemand{.dataset = 9}).code(), Code::kNotFound);
  EXPECT_EQ(refusal_counters_.count(Refused::kNamespace), 0U)
      << "it says so each second, reading or not";
}

TEST_F(AuthorizerTest, ABorrowerTellsNothingOfTheStore) {
  Enter(1, a_, "speech");
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::StoreHealth{.dataset = 1}).code(),
            Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kNamespace), 0U) << "it is no offence";
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::StoreHealth{.dataset = 2}).code(),
            Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kNamespace), 1U)
      << "this is: it may not use it at all";
  Enter(2, b_, "vision");
  EXPECT_TRUE(door_.AuthorizeMessage(2, wire::StoreHealth{.dataset = 1}).ok());
  EXPECT_EQ(door_.AuthorizeMessage(2, wire::StoreHealth{.dataset = 9}).code(), Code::kNotFound);
}

TEST_F(AuthorizerTest, AnAccessThatIsTakenBackEndsAtOnce) {
  Enter(1, a_, "speech");
  state_.datasets[0].namespaces = {"vision"};
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::Get{.dataset = 1}).code(), Code::kPermissionDenied);
}

TEST_F(AuthorizerTest, SoDoesItsStreamUntilTheAccessIsThereAgain) {
  Enter(1, a_, "speech");
  ASSERT_TRUE(door_.AuthorizeMessage(1, Attach("speech")).ok());
  state_.datasets[0].namespaces = {"vision"};
  door_.OnState();
  EXPECT_EQ(Changes(), std::vector<std::string>{"-speech/job-2/birds/train5"});
  EXPECT_EQ(refusal_counters_.count(Refused::kStream), 1U);
  EXPECT_TRUE(Changes().empty()) << "told once";
  state_.datasets[0].namespaces = {"vision", "speech"};
  door_.OnState();
  EXPECT_EQ(Changes(), std::vector<std::string>{"+speech/job-2/birds/train5"});
}

TEST_F(AuthorizerTest, AStreamComesBackWithItsOrder) {
  Enter(1, a_, "speech");
  state_.datasets[0].namespaces = {"vision"};
  const wire::StreamAttach attach = Attach("speech");
  const wire::StreamOrder order{.stream = attach.stream, .recipe = "spdl-random size=9"};
  EXPECT_FALSE(door_.AuthorizeMessage(1, attach).ok());
  EXPECT_TRUE(door_.AuthorizeMessage(1, order).ok()) << "it follows, and is heard by nobody yet";
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::StreamOrder{.stream = 99, .recipe = "x"}).ok());
  for (int turn = 0; turn < 2; ++turn) {
    state_.datasets[0].namespaces = {"vision", "speech"};
    door_.OnState();
    const std::vector<JudgedAnew> granted = door_.JudgeAnew();
    ASSERT_EQ(granted.size(), 1U);
    EXPECT_TRUE(granted[0].granted);
    EXPECT_EQ(granted[0].order, order);
    state_.datasets[0].namespaces = {"vision"};
    door_.OnState();
    EXPECT_EQ(door_.JudgeAnew().size(), 1U);
  }
  EXPECT_FALSE(door_.AuthorizeMessage(1, attach).ok());
  state_.datasets[0].namespaces = {"vision", "speech"};
  door_.OnState();
  EXPECT_EQ(door_.JudgeAnew().at(0).order, std::nullopt) << "this time it has said none";
}

// A Dataset of another namespace is deleted: the pod's own is served as before.
TEST_F(AuthorizerTest, OneRefusalLeavesTheOthersAlone) {
  state_.datasets.push_back({.name = "speech/own", .key = 3, .namespaces = {"speech"}});
  Enter(1, a_, "speech");
  state_.datasets.erase(state_.datasets.begin());
  EXPECT_EQ(door_.AuthorizeMessage(1, Attach("speech")).code(), Code::kPermissionDenied);
  EXPECT_TRUE(door_.AuthorizeMessage(1, Attach("speech", 6, "speech/own")).ok());
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::Get{.dataset = 3}).ok());
  EXPECT_FALSE(a_.closed());
}

TEST_F(AuthorizerTest, WhatTheStateDoesNotKnowIsForItsOwnNamespaceWhereItIsHeld) {
  Enter(1, a_, "sound");
  Enter(2, b_, "vision");
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::Get{.dataset = 2}).code(), Code::kPermissionDenied);
  state_.datasets.pop_back();
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::Get{.dataset = 2}).code(), Code::kNotFound);
  EXPECT_FALSE(door_.MayStore(1, 2));
  EXPECT_TRUE(door_.AuthorizeMessage(2, wire::Get{.dataset = 2}).ok());
  EXPECT_TRUE(door_.MayStore(2, 2));
  held_.clear();
  EXPECT_EQ(door_.AuthorizeMessage(2, wire::Get{.dataset = 2}).code(), Code::kNotFound);
}

TEST_F(AuthorizerTest, OnlyNodesReadAsNodesDo) {
  Enter(1, a_, "vision");
  EXPECT_EQ(door_.AuthorizeMessage(1, wire::Get{.dataset = 1, .mode = wire::GetMode::kPeer}).code(),
            Code::kPermissionDenied);
}

TEST_F(AuthorizerTest, WhatNoSidecarSaysIsRefusedFromAPod) {
  Enter(1, a_, "vision");
  const std::vector<wire::Message> messages = {
      wire::Hello{},  wire::Welcome{},     wire::SampleReply{}, wire::StoreReply{},
      wire::Lookup{}, wire::LookupReply{}, wire::Holding{},     wire::Announce{},
      wire::Push{},   wire::StoreShare{}};
  for (const wire::Message& message : messages) {
    EXPECT_EQ(door_.AuthorizeMessage(1, message).code(), Code::kPermissionDenied)
        << message.index();
    EXPECT_TRUE(door_.AuthorizeMessage(2, message).ok()) << "a node";
  }
  EXPECT_EQ(refusal_counters_.count(Refused::kCertificate), messages.size());
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::StreamTrace{}).ok()) << "ignored, if not announced";
  EXPECT_TRUE(door_.AuthorizeMessage(1, wire::StreamPassEnd{}).ok());
}

TEST_F(AuthorizerTest, StreamsOfOtherNamespacesAreNotAnnounced) {
  Enter(1, a_, "speech");
  EXPECT_EQ(door_.AuthorizeMessage(1, Attach("vision")).code(), Code::kPermissionDenied);
  EXPECT_TRUE(door_.AuthorizeMessage(1, Attach("speech")).ok());
  EXPECT_EQ(refusal_counters_.count(Refused::kStream), 1U);
}

TEST_F(AuthorizerTest, StreamsHaveALimitForTheNamespaceOverAllItsPods) {
  Enter(1, a_, "vision");
  Enter(2, b_, "vision");
  EXPECT_TRUE(door_.AuthorizeMessage(1, Attach("vision", 1)).ok());
  EXPECT_TRUE(door_.AuthorizeMessage(2, Attach("vision", 2)).ok());
  EXPECT_EQ(door_.AuthorizeMessage(1, Attach("vision", 3)).code(), Code::kResourceExhausted);
  EXPECT_TRUE(Changes().empty());
  door_.OnClosed(2);
  EXPECT_EQ(Changes(), std::vector<std::string>{"+vision/job-2/birds/train3"});
  EXPECT_TRUE(door_.AuthorizeMessage(1, Attach("vision", 3)).ok());
}

TEST_F(AuthorizerTest, ThoseThatWaitForRoomHaveTheSameLimit) {
  Enter(1, a_, "vision");
  for (int i = 1; i <= 9; ++i)
    EXPECT_EQ(door_.AuthorizeMessage(1, Attach("vision", i)).ok(), i <= 2);
  for (int i = 1; i <= 2; ++i)
    EndStream(1, i);
  EXPECT_EQ(Changes().size(), 2U);
  for (int i = 3; i <= 9; ++i)
    EndStream(1, i);
  EXPECT_TRUE(Changes().empty());
}

TEST_F(AuthorizerTest, ConnectionsHaveALimitForTheNamespace) {
  Enter(1, a_, "vision");
  Enter(2, b_, "vision");
  EXPECT_EQ(Authorize({.name = "vision/train-0", .token = "vision train-0 machine-7"}).code(),
            Code::kResourceExhausted);
  EXPECT_TRUE(Authorize({.name = "speech/train-0", .token = "speech train-0 machine-7"}).ok())
      << "others do not suffer";
}

TEST_F(AuthorizerTest, ThoseWhoAreOnTheirWayInCountToo) {
  for (const char* address : {"10.0.0.1:1", "10.0.0.1:2"})
    EXPECT_TRUE(
        Authorize({.name = "vision/train-0", .token = "vision train-0 machine-7"}, address).ok());
  EXPECT_EQ(Authorize({.name = "vision/train-0", .token = "vision train-0 machine-7"}).code(),
            Code::kResourceExhausted);
  clock_.Advance(std::chrono::seconds(30));  // They did not come.
  EXPECT_TRUE(Authorize({.name = "vision/train-0", .token = "vision train-0 machine-7"}).ok());
}

// A pod that trains for weeks attaches many times.
TEST_F(AuthorizerTest, AStreamThatIsAnnouncedAgainOrHasEndedCountsOnce) {
  Enter(1, a_, "vision");
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(door_.AuthorizeMessage(1, Attach("vision", 1)).ok());
  for (int i = 2; i < 10; ++i) {
    const wire::StreamAttach attach = Attach("vision", i);
    EXPECT_TRUE(door_.AuthorizeMessage(1, attach).ok()) << i;
    EXPECT_TRUE(
        door_.AuthorizeMessage(1, wire::StreamProgress{.stream = attach.stream, .ended = true})
            .ok());
  }
}

// What has ended counts for the report, where it is listed a while longer, and not here.
TEST_F(AuthorizerTest, WhoAttachesAndEndsInALoopFillsNoReport) {
  Enter(1, a_, "vision");
  Enter(2, b_, "speech");
  StreamTable listed;
  const auto attach = [&](ClientId client, const wire::StreamAttach& what) {
    return door_.AuthorizeMessage(client, what).ok() && listed.OnAttach(client, what).ok();
  };
  const StreamId stream = Attach("vision").stream;
  for (Rank rank = 0; rank < 30'000; ++rank) {
    wire::StreamAttach what = Attach("vision");
    what.world = coordination::kMaxWorld;
    what.rank = rank;
    ASSERT_TRUE(attach(1, what)) << rank;
    if (rank == 0) continue;  // it reads on, and so its stream goes on
    const wire::StreamProgress end{.stream = stream, .rank = rank, .ended = true};
    ASSERT_TRUE(door_.AuthorizeMessage(1, end).ok());
    listed.OnProgress(1, end, clock_.Now());
  }
  EXPECT_TRUE(attach(2, Attach("speech")));
  const auto json = coordination::ToJson(
      coordination::Report{.node = "n", .address = "a:1", .streams = listed.Report()});
  EXPECT_TRUE(coordination::ParseReport(json).has_value()) << json.size() << " bytes";
  const auto ranks = listed.Report().front().ranks;
  EXPECT_EQ(ranks.front().rank, 0U) << "it is listed still";
}

TEST_F(AuthorizerTest, WhoDoesNotTakeHisAnswersGetsNoMore) {
  Enter(1, a_, "vision");
  FakeConnection other(wire::Role::kSidecar, "10.0.0.3:1");
  Enter(2, other, "speech");
  a_.queued = 100;
  const auto none = [](ClientId) { return std::size_t{0}; };
  EXPECT_EQ(door_.WithinLimits(1, none).code(), Code::kResourceExhausted);
  EXPECT_TRUE(door_.WithinLimits(2, none).ok());
}

TEST_F(AuthorizerTest, LeasesHaveALimitForTheNamespaceOverAllItsPods) {
  Enter(1, a_, "vision");
  Enter(2, b_, "vision");
  FakeConnection other(wire::Role::kSidecar, "10.0.0.3:1");
  Enter(3, other, "speech");
  const auto half = [](ClientId client) { return client == 3 ? std::size_t{0} : std::size_t{5}; };
  EXPECT_EQ(door_.WithinLimits(1, half).code(), Code::kResourceExhausted);
  EXPECT_TRUE(door_.WithinLimits(3, half).ok());
  EXPECT_EQ(refusal_counters_.count(Refused::kLimit), 1U);
}

// --- Tokens of open connections -----------------------------------------------------------------

// {"exp":1800000031}, thirty seconds from the test's now.
constexpr const char* kExpiring = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjE4MDAwMDAwMzF9.";

TEST_F(AuthorizerTest, ATokenIsReviewedAgainAsLongAsItsConnectionIsOpen) {
  Enter(1, a_, "vision");
  Pass(std::chrono::minutes(4));
  EXPECT_EQ(reviewer_.reviews, 1);
  for (int i = 2; i < 20; ++i) {
    Pass(std::chrono::minutes(5));
    EXPECT_EQ(reviewer_.reviews, i);
  }
  EXPECT_FALSE(a_.closed());
}

// Its token has been carried to wherever this connection comes from.
TEST_F(AuthorizerTest, AConnectionEndsFiveMinutesAfterItsPod) {
  Enter(1, a_, "vision");
  Pass(std::chrono::seconds(1));
  reviewer_.outcome = Status(Code::kPermissionDenied, "the pod is gone");
  Pass(std::chrono::minutes(5));
  ASSERT_TRUE(a_.closed());
  EXPECT_EQ(a_.closed_with->code(), Code::kPermissionDenied);
  EXPECT_EQ(refusal_counters_.count(Refused::kToken), 1U);
}

TEST_F(AuthorizerTest, AConnectionEndsWithItsToken) {
  Enter(1, a_, "vision", kExpiring);
  Pass(std::chrono::seconds(29));
  EXPECT_FALSE(a_.closed());
  Pass(std::chrono::seconds(2));
  ASSERT_TRUE(a_.closed());
  EXPECT_EQ(a_.closed_with->code(), Code::kUnavailable);
  EXPECT_EQ(reviewer_.reviews, 1) << "nobody need be asked";
}

TEST_F(AuthorizerTest, ASecondConnectionWithAKnownTokenIsNotReviewedLater) {
  Enter(1, a_, "vision");
  Pass(std::chrono::minutes(4));
  Enter(2, b_, "vision");
  EXPECT_EQ(reviewer_.reviews, 1);
  reviewer_.outcome = Status(Code::kPermissionDenied, "the pod is gone");
  Pass(std::chrono::minutes(1));
  EXPECT_TRUE(a_.closed());
  EXPECT_TRUE(b_.closed());
}

// {"exp":1800003601}: an hour.
TEST_F(AuthorizerTest, WhileTheApiServerIsAwayATokenIsGoodUntilItsOwnEnd) {
  Enter(1, a_, "vision", "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjE4MDAwMDM2MDF9.");
  reviewer_.outcome = Status(Code::kUnavailable, "no route to host");
  for (int minute = 0; minute < 59; ++minute) {
    Pass(std::chrono::minutes(1));
    EXPECT_FALSE(a_.closed()) << minute;
  }
  Pass(std::chrono::minutes(2));
  EXPECT_TRUE(a_.closed());
}

TEST_F(AuthorizerTest, WhileTheApiServerIsAwayATokenWithoutAnEndIsGoodForFiveMinutes) {
  Enter(1, a_, "vision");
  reviewer_.outcome = Status(Code::kUnavailable, "no route to host");
  Pass(std::chrono::minutes(4));
  EXPECT_FALSE(a_.closed());
  Pass(std::chrono::minutes(1));
  EXPECT_TRUE(a_.closed());
}

TEST_F(AuthorizerTest, RoomIsMadeOnlyForDatasetsThatAreShared) {
  Enter(1, a_, "speech");
  EXPECT_TRUE(door_.MayStore(1, 1));
  EXPECT_FALSE(door_.MayStore(1, 2));
}

}  // namespace
}  // namespace optcache::node
