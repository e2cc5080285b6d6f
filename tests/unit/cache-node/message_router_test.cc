#include "cache-node/serving/message_router.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "cache/directory.h"
#include "support/manual_clock.h"
#include "unit/cache-node/fake_visitors.h"
#include "unit/net/loop_fixture.h"
#include "wire/stream_id.h"

namespace optcache::node {
namespace {

constexpr wire::DatasetKey kRoutedKey = 1;
constexpr wire::DatasetKey kUnknownKey = 9;
constexpr wire::MemberId kRouterSelf = 1;
constexpr std::uint32_t kRoutedSize = 100;
constexpr std::size_t kRoutedSamples = 64;
constexpr std::uint32_t kRoutedRequest = 77;
const std::string kRoutedStreamName = "vision/job/birds/train";
const StreamId kRoutedStream = wire::StreamIdOf(kRoutedStreamName, 0);

struct SentMessage {
  ClientId client = 0;        // of an answer
  wire::MemberId member = 0;  // of what another node is asked or told
  std::uint32_t request_id = 0;
  wire::Message message;
  ByteCount payload = 0;
};

class SentMessages final : public Effects {
 public:
  std::uint32_t NewRequestId() override { return next_request_++; }
  bool Reply(ClientId to, std::uint32_t request_id, const wire::Message& message,
             const cache::SampleRef& payload) override {
    sent.push_back({.client = to,
                    .request_id = request_id,
                    .message = message,
                    .payload = payload ? payload->size() : 0});
    return true;
  }
  bool Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
            const cache::SampleRef& payload) override {
    sent.push_back({.member = to,
                    .request_id = request_id,
                    .message = message,
                    .payload = payload ? payload->size() : 0});
    return true;
  }
  std::vector<SentMessage> sent;

 private:
  std::uint32_t next_request_ = 1000;
};

// A node with one dataset, which it shares with two others.
class MessageRouterTest : public testing::Test {
 protected:
  MessageRouterTest() {
    sidecar_.number = 1;
    sidecar_.name = "vision/train-0";
    peer_.number = 2;
    peer_.member = 2;
    peer_.name = "node-b";
    third_.number = 3;
    third_.member = 3;
    const coordination::DatasetState& birds = state_.datasets[0];
    datasets_[kRoutedKey] = std::make_shared<NodeDataset>(
        birds, kRouterSelf, plan::Sizes(std::vector<std::uint32_t>(kRoutedSamples, kRoutedSize)),
        std::vector<dataset::Digest>{}, sent_, [](const DerivedWindow&) {},
        std::make_shared<DeriverEnds>());
    datasets_[kRoutedKey]->Apply(birds, {1, 2, 3}, clock_.Now());
  }

  MessageRouter::Parts Parts() {
    return {.streams = streams_,
            .stores = stores_,
            .savings = savings_,
            .rates = rates_,
            .live_memory = live_memory_,
            .datasets = datasets_,
            .effects = sent_};
  }
  MessageRouter::Hooks Hooks() {
    return {.state = [this]() -> const coordination::DesiredState& { return state_; },
            .used = [this](const std::string& dataset) { used_.push_back(dataset); }};
  }

  // The first sample whose home is that member.
  static SampleId AtHomeOf(wire::MemberId member) {
    const cache::HomeMap homes(kRoutedKey, {1, 2, 3});
    SampleId id = 0;
    while (homes.Home(id) != member)
      ++id;
    return id;
  }
  static std::string BytesOf(SampleId id) {
    return std::string(kRoutedSize, static_cast<char>(id + 1));
  }
  static std::uint32_t CrcOf(SampleId id) { return Crc32c(AsBytes(BytesOf(id))); }

  void Say(FakeConnection& from, wire::Message message, std::uint32_t request_id = kRoutedRequest) {
    router_->OnMessage(from, request_id, std::move(message));
  }
  // With the bytes of sample `id`. Whether the router had room for them.
  bool SayWithBytes(FakeConnection& from, const wire::Message& message, SampleId id,
                    std::uint32_t request_id = kRoutedRequest) {
    const std::string bytes = BytesOf(id);
    const net::PayloadSink sink = router_->OnPayloadStart(from, request_id, message, bytes.size());
    const bool has_room = sink.destination.size() == bytes.size();
    if (has_room) std::ranges::copy(AsBytes(bytes), sink.destination.begin());
    router_->OnPayload(from, request_id, message,
                       has_room ? OkStatus() : Status(Code::kCancelled, "no room"));
    return has_room;
  }
  // The only thing that was sent since the last call.
  template <typename M>
  M Only(std::optional<ClientId> to = std::nullopt) {
    EXPECT_EQ(sent_.sent.size(), 1U);
    if (sent_.sent.empty()) return {};
    last_ = sent_.sent.back();
    sent_.sent.clear();
    if (to) {
      EXPECT_EQ(last_.client, *to);
      EXPECT_EQ(last_.request_id, kRoutedRequest);
    }
    EXPECT_TRUE(std::holds_alternative<M>(last_.message)) << last_.message.index();
    return std::holds_alternative<M>(last_.message) ? std::get<M>(last_.message) : M{};
  }
  // What the sidecar hears of a sample.
  wire::SampleReply Read(SampleId id, wire::DatasetKey dataset = kRoutedKey) {
    Say(sidecar_, wire::Get{.dataset = dataset, .items = {{.id = id}}});
    return Only<wire::SampleReply>(IdOf(sidecar_));
  }
  // What `asker` hears of one that has its home here.
  wire::LookupItem LookUp(FakeConnection& asker, SampleId id) {
    Say(asker, wire::Lookup{.dataset = kRoutedKey, .ids = {id}});
    const auto reply = Only<wire::LookupReply>(IdOf(asker));
    EXPECT_EQ(reply.items.size(), 1U);
    return reply.items.empty() ? wire::LookupItem{} : reply.items[0];
  }
  // The sidecar has read it from the store.
  void PutHere(SampleId id) {
    const wire::SampleReply miss = Read(id);
    ASSERT_EQ(miss.answer, wire::Answer::kMissKeep);
    EXPECT_TRUE(SayWithBytes(
        sidecar_,
        wire::Put{.dataset = kRoutedKey, .item = {.id = id}, .lease = miss.lease, .crc = CrcOf(id)},
        id));
    const auto stored = Only<wire::StoreReply>(IdOf(sidecar_));
    EXPECT_TRUE(stored.accepted);
    EXPECT_EQ(stored.id, id);
  }
  void Attach(bool known) {
    Say(sidecar_, wire::StreamAttach{.dataset = kRoutedKey,
                                     .dataset_name = "vision/birds",
                                     .stream = kRoutedStream,
                                     .stream_name = kRoutedStreamName,
                                     .known = known});
  }
  coordination::RankReport TheRank() {
    const auto report = streams_.Report();
    EXPECT_EQ(report.size(), 1U);
    return report.empty() ? coordination::RankReport{} : report[0].ranks.at(0);
  }
  DatasetCache& cache() { return datasets_[kRoutedKey]->cache(); }

  ManualClock clock_;
  coordination::DesiredState state_{.datasets = {{.name = "vision/birds",
                                                  .key = kRoutedKey,
                                                  .retention = coordination::Retention::kLru,
                                                  .capacities = {{.member = 1, .bytes = 1_MiB},
                                                                 {.member = 2, .bytes = 1_MiB},
                                                                 {.member = 3, .bytes = 1_MiB}},
                                                  .namespaces = {"vision"}}}};
  FakeConnection sidecar_{wire::Role::kSidecar, "10.0.0.1:1"};
  FakeConnection peer_{wire::Role::kNode, "10.0.0.2:1"};
  FakeConnection third_{wire::Role::kNode, "10.0.0.3:1"};
  SentMessages sent_;
  StreamTable streams_;
  StoreTable stores_;
  SavingsTable savings_;
  RateTable rates_;
  LiveMemory live_memory_{1_GiB};
  Datasets datasets_;
  std::vector<std::string> used_;
  SentMessage last_;
  std::unique_ptr<MessageRouter> router_ =
      std::make_unique<MessageRouter>(clock_, Parts(), Hooks());
};

// --- Samples ------------------------------------------------------------------------------------

TEST_F(MessageRouterTest, AGetAndAPutReachTheDataset) {
  const SampleId id = AtHomeOf(kRouterSelf);
  PutHere(id);
  EXPECT_EQ(Read(id).answer, wire::Answer::kHere);
  EXPECT_EQ(last_.payload, kRoutedSize);
}

TEST_F(MessageRouterTest, AGetOfAStreamShowsItsRankAndItsPass) {
  Attach(true);
  Say(sidecar_, wire::StreamProgress{.stream = kRoutedStream, .pass = 2});
  const SampleId id = AtHomeOf(kRouterSelf);
  Say(sidecar_, wire::Get{.dataset = kRoutedKey,
                          .stream = kRoutedStream,
                          .items = {{.pass = 2, .position = 40, .id = id}}});
  ASSERT_EQ(streams_.Positions(kRoutedKey).size(), 1U);
  EXPECT_EQ(streams_.Positions(kRoutedKey)[0].next.position, 41U);
}

TEST_F(MessageRouterTest, ALeaseUpdateOfASidecarEndsItsLease) {
  const SampleId id = AtHomeOf(kRouterSelf);
  const wire::LeaseId lease = Read(id).lease;
  ASSERT_EQ(cache().leases(IdOf(sidecar_)), 1U);
  const wire::LeaseUpdate failed{
      .dataset = kRoutedKey, .event = wire::LeaseEvent::kFailed, .leases = {{id, lease}}};
  Say(third_, failed);
  EXPECT_EQ(cache().leases(IdOf(sidecar_)), 1U) << "a node speaks of its own";
  Say(sidecar_, failed);
  EXPECT_EQ(cache().leases(IdOf(sidecar_)), 0U);
}

TEST_F(MessageRouterTest, ALookupIsAnsweredAndALeaseUpdateOfANodeEndsItsLease) {
  const SampleId id = AtHomeOf(kRouterSelf);
  const wire::LookupItem leased = LookUp(peer_, id);
  ASSERT_EQ(leased.found, wire::Found::kLeased);
  EXPECT_EQ(LookUp(third_, id).found, wire::Found::kWaiting);
  Say(peer_, wire::LeaseUpdate{.dataset = kRoutedKey,
                               .event = wire::LeaseEvent::kFailed,
                               .leases = {{id, leased.lease}}});
  EXPECT_EQ(LookUp(third_, id).found, wire::Found::kLeased);
}

TEST_F(MessageRouterTest, AHoldingIsFoundByTheNextLookup) {
  const SampleId id = AtHomeOf(kRouterSelf);
  Say(peer_, wire::Holding{.dataset = kRoutedKey, .gained = {id}});
  const wire::LookupItem held = LookUp(third_, id);
  EXPECT_EQ(held.found, wire::Found::kHeld);
  EXPECT_EQ(held.holder, peer_.member);
}

TEST_F(MessageRouterTest, AnswersOfPeersBringASampleToItsReader) {
  const SampleId id = AtHomeOf(2);
  Say(sidecar_, wire::Get{.dataset = kRoutedKey, .items = {{.id = id}}});
  EXPECT_EQ(Only<wire::Lookup>().ids, std::vector<SampleId>{id});
  EXPECT_EQ(last_.member, 2U);
  Say(peer_,
      wire::LookupReply{.dataset = kRoutedKey,
                        .items = {{.id = id, .found = wire::Found::kHeld, .holder = 3}}},
      last_.request_id);
  EXPECT_EQ(Only<wire::Get>().mode, wire::GetMode::kPeer);
  EXPECT_EQ(last_.member, 3U);
  const wire::SampleReply here{.answer = wire::Answer::kHere, .crc = CrcOf(id)};
  EXPECT_TRUE(SayWithBytes(third_, here, id, last_.request_id));
  EXPECT_EQ(Only<wire::SampleReply>(IdOf(sidecar_)).answer, wire::Answer::kPeer);
  EXPECT_EQ(last_.payload, kRoutedSize);
}

TEST_F(MessageRouterTest, AnAnswerOfAPeerWithoutBytesReachesItsReader) {
  const SampleId id = AtHomeOf(2);
  Say(sidecar_, wire::Get{.dataset = kRoutedKey, .items = {{.id = id}}});
  Only<wire::Lookup>();
  Say(peer_,
      wire::LookupReply{.dataset = kRoutedKey,
                        .items = {{.id = id, .found = wire::Found::kHeld, .holder = 3}}},
      last_.request_id);
  Only<wire::Get>();
  Say(third_, wire::SampleReply{.answer = wire::Answer::kMissDrop}, last_.request_id);
  EXPECT_EQ(Only<wire::SampleReply>(IdOf(sidecar_)).answer, wire::Answer::kMissDrop);
}

TEST_F(MessageRouterTest, AnAnnouncedSampleIsAwaitedAndAPushBringsIt) {
  const SampleId id = AtHomeOf(kRouterSelf);
  Say(peer_, wire::Announce{.dataset = kRoutedKey, .ids = {id}});
  EXPECT_EQ(Read(id).answer, wire::Answer::kOnItsWay);
  EXPECT_TRUE(SayWithBytes(
      peer_, wire::Push{.dataset = kRoutedKey, .item = {.id = id}, .crc = CrcOf(id)}, id));
  EXPECT_TRUE(Only<wire::StoreReply>(IdOf(peer_)).accepted);
  EXPECT_EQ(Read(id).answer, wire::Answer::kHere);
}

TEST_F(MessageRouterTest, AStoreReplyEndsThePushThatItAnswers) {
  const SampleId id = AtHomeOf(kRouterSelf);
  PutHere(id);
  datasets_[kRoutedKey]->OnEnding({.deadline = clock_.Now() + std::chrono::hours(1),
                                   .on_disk = RetentionManager::OnDisk::kGoes});
  ASSERT_EQ(datasets_[kRoutedKey]->GiveAway(clock_.Now()), 1U);
  cache().Tick(clock_.Now());
  const auto push = std::ranges::find_if(sent_.sent, [](const SentMessage& sent) {
    return std::holds_alternative<wire::Push>(sent.message);
  });
  ASSERT_NE(push, sent_.sent.end());
  ASSERT_EQ(cache().push_queue().samples(), 1U);
  Say(peer_, wire::StoreReply{.dataset = kRoutedKey, .id = id, .accepted = true}, push->request_id);
  EXPECT_EQ(cache().push_queue().samples(), 0U);
}

TEST_F(MessageRouterTest, OfAnUnknownDatasetNothingIsHere) {
  EXPECT_EQ(Read(0, kUnknownKey).answer, wire::Answer::kMissDrop);
  Say(peer_, wire::Lookup{.dataset = kUnknownKey, .ids = {5}});
  const auto nobody = Only<wire::LookupReply>(IdOf(peer_));
  ASSERT_EQ(nobody.items.size(), 1U);
  EXPECT_EQ(nobody.items[0].id, 5U);
  EXPECT_EQ(nobody.items[0].found, wire::Found::kNobody);
  EXPECT_FALSE(SayWithBytes(sidecar_, wire::Put{.dataset = kUnknownKey}, 0));
  EXPECT_FALSE(SayWithBytes(peer_, wire::Push{.dataset = kUnknownKey}, 0));
  Say(sidecar_, wire::LeaseUpdate{.dataset = kUnknownKey});
  Say(peer_, wire::LookupReply{.dataset = kUnknownKey});
  Say(peer_, wire::Holding{.dataset = kUnknownKey});
  Say(peer_, wire::Announce{.dataset = kUnknownKey});
  Say(peer_, wire::StoreReply{.dataset = kUnknownKey});
  EXPECT_TRUE(sent_.sent.empty());
}

// --- What sidecars tell the coordinator ---------------------------------------------------------

TEST_F(MessageRouterTest, WhatIsSaidOfAStreamReachesItsTable) {
  Attach(false);
  EXPECT_TRUE(used_.empty()) << "on a laptop all is served everywhere";
  Say(sidecar_,
      wire::StreamTrace{
          .stream = kRoutedStream, .bits = 8, .length = 2, .packed = {std::byte{1}, std::byte{2}}});
  EXPECT_EQ(TheRank().traces.size(), 1U);
  Say(sidecar_, wire::StreamPassEnd{.stream = kRoutedStream, .reads = 1});
  EXPECT_EQ(TheRank().pass_reads, 1U);
  Say(sidecar_, wire::StreamProgress{.stream = kRoutedStream, .pass = 3, .position = 1});
  EXPECT_EQ(TheRank().pass, 3U);
}

TEST_F(MessageRouterTest, AStreamsOrderReachesItsTable) {
  Attach(false);
  EXPECT_FALSE(TheRank().recipe.known);
  Say(sidecar_, wire::StreamOrder{.stream = kRoutedStream,
                                  .recipe = "spdl-random size=9 world=1 drop_last=true"});
  EXPECT_TRUE(TheRank().recipe.known);
}

TEST_F(MessageRouterTest, WhatIsSaidOfStoresAndSavingsReachesItsTable) {
  Say(sidecar_, wire::StoreHealth{.dataset = kRoutedKey, .state = wire::StoreState::kAnswers});
  EXPECT_EQ(stores_.Report(kRoutedKey, clock_.Now()).answering, 1U);
  Say(sidecar_, wire::Savings{.dataset = kUnknownKey, .requests = 3});
  Say(sidecar_, wire::Savings{.dataset = kRoutedKey, .requests = 3});
  ASSERT_EQ(savings_.Batch().datasets.size(), 1U);
  EXPECT_EQ(savings_.Batch().datasets[0].dataset, "vision/birds");
  Say(sidecar_, wire::StoreDemand{.dataset = kRoutedKey, .requests_milli = 500});
  ASSERT_EQ(rates_.Report().size(), 1U);
  EXPECT_EQ(rates_.Report()[0].dataset, "vision/birds");
}

// --- Not heard ----------------------------------------------------------------------------------

TEST_F(MessageRouterTest, AMessageThatNoNodeGetsEndsTheConnectionAndIsNamedWithItsSender) {
  const std::vector<std::pair<wire::Message, std::string>> never = {
      {wire::Hello{}, "Hello"},
      {wire::Welcome{}, "Welcome"},
      {wire::Refusal{}, "Refusal"},
      {wire::StoreShare{}, "StoreShare"}};
  for (const auto& [message, name] : never) {
    sidecar_.closed_with.reset();
    peer_.closed_with.reset();
    Say(sidecar_, message);
    Say(peer_, message);
    ASSERT_TRUE(sidecar_.closed_with && peer_.closed_with) << name;
    EXPECT_EQ(sidecar_.closed_with->code(), Code::kInvalidArgument);
    EXPECT_EQ(sidecar_.closed_with->message(),
              name + " came from sidecar vision/train-0, but a node never gets that");
    EXPECT_EQ(peer_.closed_with->message(),
              name + " came from node node-b, but a node never gets that");
  }
  EXPECT_TRUE(sent_.sent.empty());
}

TEST_F(MessageRouterTest, WithAConnectionAllThatItSaidEnds) {
  Attach(true);
  Say(sidecar_, wire::StoreHealth{.dataset = kRoutedKey, .state = wire::StoreState::kAnswers});
  Say(sidecar_, wire::StoreDemand{.dataset = kRoutedKey, .requests_milli = 500});
  const SampleId id = AtHomeOf(kRouterSelf);
  const wire::SampleReply miss = Read(id);
  const ByteCount used = cache().tier().used();
  const wire::Put put{.dataset = kRoutedKey, .item = {.id = id}, .lease = miss.lease};
  ASSERT_FALSE(
      router_->OnPayloadStart(sidecar_, kRoutedRequest, put, kRoutedSize).destination.empty());
  ASSERT_GT(cache().tier().used(), used);
  router_->OnClosed(IdOf(sidecar_));
  EXPECT_EQ(cache().tier().used(), used) << "its payload never came";
  EXPECT_EQ(cache().leases(IdOf(sidecar_)), 0U);
  EXPECT_TRUE(streams_.Report().empty());
  EXPECT_EQ(stores_.Report(kRoutedKey, clock_.Now()).answering, 0U);
  EXPECT_TRUE(rates_.Report().empty());
}

TEST_F(MessageRouterTest, NothingIsReceivedWithoutMemory) {
  live_memory_ = LiveMemory(0);
  const auto live = cache::SampleBytes(16_MiB);
  const wire::Put put{.dataset = kRoutedKey, .item = {.id = AtHomeOf(kRouterSelf)}};
  EXPECT_TRUE(
      router_->OnPayloadStart(sidecar_, kRoutedRequest, put, kRoutedSize).destination.empty());
  EXPECT_EQ(live_memory_.refused(), 1U);
}

// --- In a cluster -------------------------------------------------------------------------------

// Pods of two namespaces, of which one may use the dataset.
class RouterOfAClusterTest : public MessageRouterTest {
 protected:
  RouterOfAClusterTest() {
    MessageRouter::Parts parts = Parts();
    parts.authorizer = &door_;
    parts.visitors = &visitors_;
    router_ = std::make_unique<MessageRouter>(clock_, parts, Hooks());
    stranger_.number = 4;
    Enter(sidecar_, "vision");
    Enter(stranger_, "sound");
  }
  void Enter(FakeConnection& connection, const std::string& ns) {
    door_.Authorize({.name = ns + "/train-0", .token = ns + " train-0 machine-7"},
                    {.address = connection.address()},
                    [](const Status& status) { ASSERT_TRUE(status.ok()); });
    ASSERT_TRUE(door_.OnOpen(IdOf(connection), connection).ok());
  }

  net::EventLoop loop_;
  InstantReviewer reviewer_;
  TokenCheck tokens_{reviewer_, clock_};
  RefusalCounters refusal_counters_{clock_};
  Authorizer door_{tokens_,
                   refusal_counters_,
                   clock_,
                   [this]() -> const coordination::DesiredState& { return state_; },
                   {.limits = {.queued_bytes = 100}}};
  NodeVisitors visitors_{loop_, clock_, door_, refusal_counters_, streams_};
  FakeConnection stranger_{wire::Role::kSidecar, "10.0.0.4:1"};
};

TEST_F(RouterOfAClusterTest, WhoMayNotSayThatHearsThatNothingIsThere) {
  PutHere(AtHomeOf(kRouterSelf));
  Say(stranger_, wire::Get{.dataset = kRoutedKey, .items = {{.id = AtHomeOf(kRouterSelf)}}});
  EXPECT_EQ(Only<wire::SampleReply>(IdOf(stranger_)).answer, wire::Answer::kMissDrop);
  EXPECT_FALSE(SayWithBytes(stranger_, wire::Put{.dataset = kRoutedKey, .item = {.id = 3}}, 3));
  const auto stored = Only<wire::StoreReply>(IdOf(stranger_));
  EXPECT_FALSE(stored.accepted);
  EXPECT_EQ(stored.id, 3U);
  EXPECT_EQ(stored.reason, Code::kPermissionDenied);
  Say(stranger_, wire::StoreHealth{.dataset = kRoutedKey, .state = wire::StoreState::kAnswers});
  Say(stranger_, wire::Savings{.dataset = kRoutedKey, .requests = 3});
  EXPECT_EQ(stores_.Report(kRoutedKey, clock_.Now()).answering, 0U);
  EXPECT_TRUE(savings_.Batch().datasets.empty());
  EXPECT_TRUE(sent_.sent.empty());
  EXPECT_FALSE(stranger_.closed()) << "others on the same connection do not suffer";
}

TEST_F(RouterOfAClusterTest, WhoMayNotAskAnyMoreHasNoPartOfAStoresLimit) {
  const wire::StoreDemand demand{.dataset = kRoutedKey, .requests_milli = 500};
  Say(sidecar_, demand);
  ASSERT_EQ(rates_.Report().size(), 1U);
  state_.datasets[0].name = "sound/birds";
  state_.datasets[0].namespaces = {"sound"};
  Say(sidecar_, demand);
  EXPECT_TRUE(rates_.Report().empty());
}

TEST_F(RouterOfAClusterTest, WhoLeavesTooManyAnswersReadsTheStore) {
  PutHere(AtHomeOf(kRouterSelf));
  sidecar_.queued = 100;
  EXPECT_EQ(Read(AtHomeOf(kRouterSelf)).answer, wire::Answer::kMissDrop);
  sidecar_.queued = 0;
  EXPECT_EQ(Read(AtHomeOf(kRouterSelf)).answer, wire::Answer::kHere);
}

TEST_F(RouterOfAClusterTest, AnAnnouncementIsJudgedAgainWithTheState) {
  state_.datasets[0].namespaces = {"sound"};
  state_.datasets[0].name = "sound/birds";
  Attach(true);
  EXPECT_TRUE(streams_.Report().empty());
  state_.datasets[0].namespaces = {"vision"};
  state_.datasets[0].name = "vision/birds";
  door_.OnState();
  router_->LookAtClients();
  EXPECT_EQ(streams_.Report().size(), 1U);
  EXPECT_EQ(used_, std::vector<std::string>{"vision/birds"});
  state_.datasets[0].namespaces = {"sound"};
  state_.datasets[0].name = "sound/birds";
  door_.OnState();
  router_->LookAtClients();
  EXPECT_TRUE(streams_.Report().empty());
}

}  // namespace
}  // namespace optcache::node
