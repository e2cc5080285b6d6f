#include "cache-node/trust/node_visitors.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "unit/cache-node/fake_visitors.h"
#include "unit/net/loop_fixture.h"
#include "wire/stream_id.h"

namespace optcache::node {
namespace {

constexpr ClientId kNode = 9;

// Pods of three namespaces, of which one owns the dataset and another is its borrower.
class NodeVisitorsTest : public testing::Test {
 protected:
  void SetUp() override {
    Enter(1, owner_, "vision");
    Enter(2, borrower_, "speech");
    Enter(3, stranger_, "sound");
  }
  void Enter(ClientId client, FakeConnection& connection, const std::string& ns) {
    std::optional<Status> decision;
    door_.Authorize({.name = ns + "/train-0", .token = ns + " train-0 machine-7"},
                    {.address = connection.address()},
                    [&](Status status) { decision = std::move(status); });
    ASSERT_TRUE(decision && decision->ok());
    ASSERT_TRUE(door_.OnOpen(client, connection).ok());
  }
  // What Prove says of `content`, whose digest is that of "right".
  Status Prove(std::string_view content) {
    const auto bytes = std::make_shared<cache::SampleBytes>(content.size());
    std::ranges::copy(AsBytes(content), bytes->writable().begin());
    std::optional<Status> proof;
    visitors_.Prove(2, bytes, dataset::Sha256Of(AsBytes(std::string_view("right"))),
                    [&](Status status) { proof = std::move(status); });
    net::RunUntil(loop_, [&] { return proof.has_value(); });
    return *proof;
  }

  net::EventLoop loop_;
  ManualClock clock_;
  InstantReviewer reviewer_;
  TokenCheck tokens_{reviewer_, clock_};
  RefusalCounters refusal_counters_{clock_};
  coordination::DesiredState state_{
      .datasets = {{.name = "vision/birds", .key = 1, .namespaces = {"vision", "speech"}}}};
  Authorizer door_{tokens_,
                   refusal_counters_,
                   clock_,
                   [this]() -> const coordination::DesiredState& { return state_; },
                   {}};
  StreamTable streams_;
  FakeConnection owner_{wire::Role::kSidecar, "10.0.0.1:1"};
  FakeConnection borrower_{wire::Role::kSidecar, "10.0.0.2:1"};
  FakeConnection stranger_{wire::Role::kSidecar, "10.0.0.3:1"};
  NodeVisitors visitors_{loop_, SystemClock(), door_, refusal_counters_, streams_};
};

TEST_F(NodeVisitorsTest, AdmitsWhatTheAuthorizerLetsThemSay) {
  for (const ClientId client : {ClientId{1}, ClientId{2}, ClientId{3}}) {
    wire::Message get = wire::Get{.dataset = 1};
    wire::Message put = wire::Put{.dataset = 1};
    EXPECT_EQ(visitors_.Admit(client, get).ok(), client != 3);
    EXPECT_EQ(visitors_.Admit(client, put).ok(), client != 3);
  }
  EXPECT_EQ(refusal_counters_.count(Refused::kNamespace), 2U);
}

TEST_F(NodeVisitorsTest, AStreamThatAPodHasNotAnnouncedHasNoOrder) {
  const std::string name = "speech/job/birds/train";
  const StreamId stream = wire::StreamIdOf(name, 0);
  const wire::StreamAttach attach{.dataset = 1,
                                  .dataset_name = "vision/birds",
                                  .stream = stream,
                                  .stream_name = name,
                                  .world = 1};
  ASSERT_TRUE(streams_.OnAttach(2, attach).ok());
  const auto admitted = [&](ClientId client) {
    wire::Message get = wire::Get{.dataset = 1, .stream = stream};
    wire::Message put = wire::Put{.dataset = 1, .stream = stream};
    EXPECT_TRUE(visitors_.Admit(client, get).ok());
    EXPECT_TRUE(visitors_.Admit(client, put).ok());
    EXPECT_EQ(std::get<wire::Get>(get).stream, std::get<wire::Put>(put).stream);
    return std::get<wire::Get>(get).stream;
  };
  EXPECT_EQ(admitted(2), stream);
  EXPECT_EQ(admitted(1), 0U) << "of another pod";
  EXPECT_EQ(admitted(kNode), stream) << "nodes read for others";
}

// Each pass that is seen has this node plan on, and those that it asks for the sample.
TEST_F(NodeVisitorsTest, APassFarAheadOfItsRanksHasNoOrder) {
  const std::string name = "speech/job/birds/train";
  const StreamId stream = wire::StreamIdOf(name, 0);
  ASSERT_TRUE(streams_
                  .OnAttach(2, {.dataset = 1,
                                .dataset_name = "vision/birds",
                                .stream = stream,
                                .stream_name = name,
                                .world = 1})
                  .ok());
  streams_.OnProgress(2, {.stream = stream, .pass = 4}, clock_.Now());
  const auto admitted = [&](PassNumber first, PassNumber last) {
    wire::Message get =
        wire::Get{.dataset = 1, .stream = stream, .items = {{.pass = first}, {.pass = last}}};
    wire::Message put = wire::Put{.dataset = 1, .stream = stream, .item = {.pass = last}};
    EXPECT_TRUE(visitors_.Admit(2, get).ok());
    EXPECT_TRUE(visitors_.Admit(2, put).ok());
    EXPECT_EQ(std::get<wire::Put>(put).stream, last == 0xFFFFFFF0 ? 0 : stream);
    return std::get<wire::Get>(get).stream;
  };
  EXPECT_EQ(admitted(4, 5), stream) << "it stages the next pass";
  EXPECT_EQ(admitted(4, 0xFFFFFFF0), 0U);
  EXPECT_EQ(admitted(0xFFFFFFF0, 4), 0U) << "wherever it stands";
}

TEST_F(NodeVisitorsTest, TheOwnerAndNodesAreBelieved) {
  for (const ClientId client : {ClientId{1}, kNode}) {
    for (const bool has_digests : {false, true}) {
      const PutTerms terms = visitors_.TermsOf(client, "vision/birds", has_digests);
      EXPECT_EQ(terms.borrower, kNoBorrower);
      EXPECT_FALSE(terms.to_prove);
    }
  }
}

TEST_F(NodeVisitorsTest, ABorrowerIsToProveWhatItPutsWhereThatCanBeProven) {
  const PutTerms terms = visitors_.TermsOf(2, "vision/birds", true);
  EXPECT_EQ(terms.borrower, kNoBorrower);
  EXPECT_TRUE(terms.to_prove);
}

TEST_F(NodeVisitorsTest, WithoutDigestsABorrowerPutsForItself) {
  const PutTerms terms = visitors_.TermsOf(2, "vision/birds", false);
  EXPECT_FALSE(terms.to_prove);
  ASSERT_NE(terms.borrower, kNoBorrower);
  EXPECT_EQ(visitors_.TermsOf(2, "vision/flowers", false).borrower, terms.borrower);
  EXPECT_NE(visitors_.TermsOf(3, "vision/birds", false).borrower, terms.borrower);
}

TEST_F(NodeVisitorsTest, PodsOfOneNamespaceAreOneBorrower) {
  FakeConnection second(wire::Role::kSidecar, "10.0.0.4:1");
  Enter(4, second, "speech");
  EXPECT_EQ(visitors_.TermsOf(4, "vision/birds", false).borrower,
            visitors_.TermsOf(2, "vision/birds", false).borrower);
}

// "vision-x" and "vis" are not "vision".
TEST_F(NodeVisitorsTest, ANamespaceWithALikeNameIsABorrower) {
  FakeConnection longer(wire::Role::kSidecar, "10.0.0.4:1");
  FakeConnection shorter(wire::Role::kSidecar, "10.0.0.5:1");
  Enter(4, longer, "vision-x");
  Enter(5, shorter, "vis");
  EXPECT_NE(visitors_.TermsOf(4, "vision/birds", false).borrower, kNoBorrower);
  EXPECT_NE(visitors_.TermsOf(5, "vision/birds", false).borrower, kNoBorrower);
}

TEST_F(NodeVisitorsTest, KnowsTheBorrowersWhoseAccessWasTakenBack) {
  const BorrowerId speech = visitors_.TermsOf(2, "vision/birds", false).borrower;
  EXPECT_TRUE(visitors_.Uninvited(state_.datasets[0]).empty());
  state_.datasets[0].namespaces = {"vision"};
  EXPECT_EQ(visitors_.Uninvited(state_.datasets[0]), std::vector<BorrowerId>{speech});
}

TEST_F(NodeVisitorsTest, BytesOfThatDigestAreProven) {
  EXPECT_TRUE(Prove("right").ok());
  EXPECT_EQ(refusal_counters_.count(Refused::kPut), 0U);
}

TEST_F(NodeVisitorsTest, OtherBytesAreRefusedAndCounted) {
  EXPECT_EQ(Prove("wrong").code(), Code::kDataLoss);
  EXPECT_EQ(refusal_counters_.count(Refused::kPut), 1U);
}

TEST_F(NodeVisitorsTest, OnlySoMuchWaitsForItsProof) {
  for (const ByteCount size : {ByteCount{0}, 1_MiB}) {
    const auto bytes = std::make_shared<cache::SampleBytes>(size);
    std::fill_n(bytes->writable().begin(), size, std::byte{1});
    std::size_t begun = 0;
    std::size_t ends = 0;
    Status refused;
    for (; refused.ok(); ++begun) {  // The loop, which takes the ends, does not run meanwhile.
      visitors_.Prove(2, bytes, {}, [&](Status status) {
        ++ends;
        if (status.code() == Code::kResourceExhausted) refused = std::move(status);
      });
      ASSERT_LE(begun, kMaxProofs);
    }
    EXPECT_EQ(begun - 1, size == 0 ? kMaxProofs : 63);
    net::RunUntil(loop_, [&] { return ends == begun; });
    EXPECT_TRUE(Prove("right").ok()) << "there is room again";
  }
}

TEST_F(NodeVisitorsTest, ALargeSampleIsProvenAlone) {
  const auto bytes = std::make_shared<cache::SampleBytes>(kMaxProofBytes + 1);
  std::ranges::fill(bytes->writable(), std::byte{1});
  std::optional<Status> large;
  visitors_.Prove(2, bytes, {}, [&](Status status) { large = std::move(status); });
  EXPECT_FALSE(large) << "it is under way";
  net::RunUntil(loop_, [&] { return large.has_value(); });
  EXPECT_EQ(large->code(), Code::kDataLoss);
}

}  // namespace
}  // namespace optcache::node
