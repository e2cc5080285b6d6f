// Nodes' manifests by HTTPS: taken, kept, given, fetched.

#include "cache-node/manifests/manifest_manager.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "dataset/manifest_builder.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"
#include "unit/cache-node/fake_http.h"
#include "unit/net/tls_fixture.h"

namespace optcache::node {
namespace {

// A token is "NAMESPACE", anything with a blank is bad.
class NamespaceReviewer final : public TokenReviewer {
 public:
  void Review(const std::string& token, Done done) override {
    if (token.contains(' ')) return done(Error(Code::kPermissionDenied, "unknown token"));
    done(ReviewedToken{.username = "system:serviceaccount:" + token + ":default", .extra = {}});
  }
};

dataset::Manifest ManifestNamed(const std::string& path) {
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  EXPECT_TRUE(builder.Add({.path = path, .size = 10}).ok());
  return std::move(builder).Finish().value();
}

class ManifestManagerTest : public testing::Test {
 protected:
  struct Place {
    std::unique_ptr<net::HttpClient> http;
    std::unique_ptr<ManifestManager> keep;
    int changes = 0;
    std::vector<std::string> used;
  };
  // A node of that name, with its certificate.
  std::unique_ptr<Place> Start(const std::string& name) {
    auto place = std::make_unique<Place>();
    place->http = Client({"optcache-node", name});
    auto keep = ManifestManager::Start(
        loop_, SystemClock(),
        {.folder = dir_.Join(name), .listen = "127.0.0.1:0", .host = "127.0.0.1", .node = name},
        {.tokens = tokens_,
         .refusal_counters = refusal_counters_,
         .http = *place->http,
         .tls = ca_.Server({"optcache-node", name})},
        {.on_change = [place = place.get()] { ++place->changes; },
         .on_used = [place = place.get()](
                        const std::string& dataset) { place->used.push_back(dataset); }});
    EXPECT_TRUE(keep.has_value()) << keep.error().message();
    place->keep = *std::move(keep);
    return place;
  }
  // Without names: without a certificate.
  std::unique_ptr<net::HttpClient> Client(const std::vector<std::string>& names = {}) {
    return net::MakeHttpClient(loop_, {.tls = names.empty() ? ca_.Client() : ca_.Client(names),
                                       .server_name = "optcache-node"});
  }
  Result<net::HttpResponse> Send(net::HttpClient& client, net::HttpRequest request) {
    std::optional<Result<net::HttpResponse>> answer;
    client.Send(std::move(request), std::chrono::minutes(2),
                [&](Result<net::HttpResponse> response) { answer = std::move(response); });
    net::RunUntil(loop_, [&] { return answer.has_value(); });
    return *std::move(answer);
  }
  net::HttpResponse Ask(net::HttpClient& client, net::HttpRequest request) {
    const auto answer = Send(client, std::move(request));
    EXPECT_TRUE(answer.has_value()) << answer.error().message();
    return answer.value_or(net::HttpResponse{.status = 0});
  }
  net::HttpResponse Put(Place& place, const std::string& token, std::string digest = "") {
    if (digest.empty()) digest = digest_;
    return Ask(*pod_, {.method = "PUT",
                       .url = place.keep->url() + "/v1/datasets/vision/birds/manifests/" + digest,
                       .headers = {{"Authorization", "Bearer " + token}},
                       .shared_body = manifest_.shared_bytes()});
  }
  net::HttpResponse Get(Place& place, const std::string& token,
                        const std::string& dataset = "vision/birds") {
    return Ask(*pod_, GetOf(place, token, dataset));
  }
  static net::HttpRequest GetOf(Place& place, const std::string& token,
                                const std::string& dataset = "vision/birds") {
    return {.url = place.keep->url() + "/v1/datasets/" + dataset + "/manifest",
            .headers = {{"Authorization", "Bearer " + token}}};
  }
  net::HttpResponse Offer(Place& place, const std::string& token, ByteCount bytes) {
    return Ask(*pod_, {.url = place.keep->url() + "/v1/datasets/vision/birds/manifests/" + digest_ +
                              "?bytes=" + std::to_string(bytes),
                       .headers = {{"Authorization", "Bearer " + token}}});
  }
  net::HttpResponse GetByDigest(Place& place, net::HttpClient& client) {
    return Ask(client, {.url = place.keep->url() + "/v1/manifests/" + digest_});
  }
  coordination::DesiredState State() const {
    return {.members = {{.id = 1, .name = "a"}, {.id = 2, .name = "b"}},
            .datasets = {{.name = "vision/birds",
                          .manifest_digest = digest_,
                          .namespaces = {"vision", "speech"}},
                         {.name = "vision/new"}}};
  }

  net::EventLoop loop_;
  TempDir dir_;
  net::TestCa ca_;
  NamespaceReviewer reviewer_;
  TokenCheck tokens_{reviewer_, SystemClock()};
  RefusalCounters refusal_counters_{SystemClock()};
  dataset::Manifest manifest_ = ManifestNamed("bird.jpg");
  std::string digest_ = dataset::ToHex(manifest_.digest());
  std::unique_ptr<net::HttpClient> pod_ = Client();
};

TEST_F(ManifestManagerTest, WhatTheOwnNamespacePutsIsKeptAndGiven) {
  const auto node = Start("a");
  EXPECT_EQ(Put(*node, "vision").status, 201);
  EXPECT_EQ(node->keep->Digests(), std::vector{digest_});
  EXPECT_GE(node->changes, 1);
  node->keep->OnState(State(), 1);
  const auto given = Get(*node, "speech");
  EXPECT_EQ(given.status, 200);
  EXPECT_EQ(given.body, manifest_.bytes());
  EXPECT_EQ(net::FindHeader(given.headers, "ETag"), '"' + digest_ + '"');
  EXPECT_EQ(node->used, std::vector<std::string>{"vision/birds"});
}

TEST_F(ManifestManagerTest, SaysBeforehandWhetherItWouldTakeOne) {
  const auto node = Start("a");
  EXPECT_EQ(Offer(*node, "vision", 100).status, 202);
  EXPECT_EQ(Offer(*node, "speech", 100).status, 403);
  EXPECT_EQ(Offer(*node, "no token", 100).status, 401);
  const auto large = Offer(*node, "vision", 100_GiB);
  EXPECT_EQ(large.status, 413);
  EXPECT_NE(large.body.find("node.stateSize"), std::string::npos) << large.body;
  ASSERT_EQ(Put(*node, "vision").status, 201);
  EXPECT_EQ(Offer(*node, "vision", 100).status, 201) << "it has it";
}

TEST_F(ManifestManagerTest, AnEmptyPutTouchesNoOthersUpload) {
  const auto node = Start("a");
  EXPECT_EQ(Ask(*pod_, {.method = "PUT",
                        .url = node->keep->url() + "/v1/datasets/vision/birds/manifests/" + digest_,
                        .headers = {{"Authorization", "Bearer vision"}}})
                .status,
            400);
  EXPECT_EQ(Put(*node, "vision").status, 201);
}

TEST_F(ManifestManagerTest, ALargeOneGoesFromNodeToNodeInPieces) {
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  for (int i = 0; i < 200'000; ++i)
    ASSERT_TRUE(builder.Add({.path = std::to_string(1'000'000 + i), .size = 10}).ok());
  manifest_ = std::move(builder).Finish().value();
  digest_ = dataset::ToHex(manifest_.digest());
  ASSERT_GT(manifest_.bytes().size(), 1_MiB);
  const auto a = Start("a");
  const auto b = Start("b");
  ASSERT_EQ(Put(*a, "vision").status, 201);
  coordination::DesiredState state = State();
  state.members[0].manifest_url = a->keep->url();
  state.datasets[0].manifest_holders = {1};
  state.datasets[0].manifest_members = {1, 2};
  b->keep->OnState(state, 2);
  net::RunUntil(loop_, [&] { return !b->keep->Digests().empty(); });
  EXPECT_TRUE(Get(*b, "speech").body == manifest_.bytes());
}

TEST_F(ManifestManagerTest, OthersPutNothing) {
  const auto node = Start("a");
  EXPECT_EQ(Put(*node, "speech").status, 403);
  EXPECT_EQ(Put(*node, "no token").status, 401);
  EXPECT_EQ(refusal_counters_.count(Refused::kManifest), 1U);
  EXPECT_EQ(refusal_counters_.count(Refused::kToken), 1U);
  EXPECT_TRUE(node->keep->Digests().empty());
}

TEST_F(ManifestManagerTest, OtherBytesThanTheDigestsAreRefused) {
  const auto node = Start("a");
  EXPECT_EQ(Put(*node, "vision", std::string(64, 'b')).status, 400);
  EXPECT_TRUE(node->keep->Digests().empty());
}

TEST_F(ManifestManagerTest, IsGivenOnlyToThoseWhoMayUseTheDataset) {
  const auto node = Start("a");
  EXPECT_EQ(Get(*node, "vision").status, 503) << "there is no state yet";
  ASSERT_EQ(Put(*node, "vision").status, 201);
  node->keep->OnState(State(), 1);
  EXPECT_EQ(Get(*node, "audio").status, 403);
  EXPECT_EQ(Get(*node, "no token").status, 401);
  EXPECT_EQ(Get(*node, "vision", "vision/unknown").status, 404);
  const auto later = Get(*node, "vision", "vision/new");
  EXPECT_EQ(later.status, 503);
  EXPECT_TRUE(net::FindHeader(later.headers, "Retry-After"));
  EXPECT_EQ(refusal_counters_.count(Refused::kNamespace), 1U);
}

TEST_F(ManifestManagerTest, OnlyNodesAskByDigest) {
  const auto node = Start("a");
  ASSERT_EQ(Put(*node, "vision").status, 201);
  EXPECT_EQ(GetByDigest(*node, *pod_).status, 403);
  EXPECT_EQ(refusal_counters_.count(Refused::kCertificate), 1U);
  const auto other = Client({"optcache-node", "b"});
  EXPECT_EQ(GetByDigest(*node, *other).body, manifest_.bytes());
}

TEST_F(ManifestManagerTest, ANodeFetchesWhatItShallHold) {
  const auto a = Start("a");
  const auto b = Start("b");
  ASSERT_EQ(Put(*a, "vision").status, 201);
  coordination::DesiredState state = State();
  state.members[0].manifest_url = a->keep->url();
  state.members[1].manifest_url = b->keep->url();
  state.datasets[0].manifest_members = {1, 2};
  state.datasets[0].manifest_holders = {1};
  b->keep->OnState(state, 2);
  net::RunUntil(loop_, [&] { return !b->keep->Digests().empty(); });
  EXPECT_EQ(Get(*b, "vision").body, manifest_.bytes());
}

TEST_F(ManifestManagerTest, WhatRetiresIsFetchedButNotGivenByName) {
  const auto a = Start("a");
  const auto b = Start("b");
  ASSERT_EQ(Put(*a, "vision").status, 201);
  coordination::DesiredState state = State();
  state.members[0].manifest_url = a->keep->url();
  state.retiring = {state.datasets[0]};
  state.retiring[0].manifest_members = {1, 2};
  state.retiring[0].manifest_holders = {1};
  state.datasets[0].manifest_digest = std::string(64, 'b');
  b->keep->OnState(state, 2);
  net::RunUntil(loop_, [&] { return !b->keep->Digests().empty(); });
  EXPECT_EQ(b->keep->Digests(), std::vector{digest_});
  EXPECT_EQ(Get(*b, "vision").status, 503) << "who begins now gets the new one, once it is here";
}

TEST_F(ManifestManagerTest, WhoWaitsForAManifestGetsItWhenItComes) {
  const auto node = Start("a");
  node->keep->OnState(State(), 1);
  std::optional<Result<SharedBytes>> got;
  node->keep->Get(digest_, [&](Result<SharedBytes> bytes) { got = std::move(bytes); });
  ASSERT_EQ(Put(*node, "vision").status, 201);
  net::RunUntil(loop_, [&] { return got.has_value(); });
  EXPECT_EQ(got->value().view(), manifest_.bytes());
}

TEST_F(ManifestManagerTest, ADamagedOneIsNotGiven) {
  const auto node = Start("a");
  ASSERT_EQ(Put(*node, "vision").status, 201);
  node->keep->OnState(State(), 1);
  ASSERT_TRUE(WriteFileAtomically(dir_.Join("a") + "/" + digest_, "damaged").ok());
  const auto damaged = Send(*pod_, GetOf(*node, "vision"));
  EXPECT_FALSE(damaged.has_value()) << "it ends before its end";
  net::RunUntil(loop_, [&] { return node->keep->Digests().empty(); });
  EXPECT_EQ(Put(*node, "vision").status, 201) << "the next one is taken";
  EXPECT_EQ(Get(*node, "vision").body, manifest_.bytes());
}

TEST_F(ManifestManagerTest, WhatWasKeptIsThereAfterARestart) {
  auto node = Start("a");
  ASSERT_EQ(Put(*node, "vision").status, 201);
  node = Start("a");
  EXPECT_EQ(node->keep->Digests(), std::vector{digest_});
}

// --- Before the body ---------------------------------------------------------------------------

class ManifestUploadTest : public ManifestManagerTest {
 protected:
  ManifestUploadTest() {
    auto opened = ManifestStore::Open(dir_.Join("store"), SystemClock());
    EXPECT_TRUE(opened.has_value());
    store_.emplace(*std::move(opened));
    worker_.emplace(loop_, SystemClock());
    server_.emplace(ManifestServer::Parts{.loop = loop_,
                                          .store = *store_,
                                          .worker = *worker_,
                                          .tokens = tokens_,
                                          .refusal_counters = refusal_counters_,
                                          .state = [] { return nullptr; },
                                          .fetch = [](const std::string&) {},
                                          .on_used = [](const std::string&) {},
                                          .on_stored = [](const std::string&) {}},
                    ManifestServerLimits{.taken = 2, .given = 2});
  }
  net::HttpHeadRuling Rule(const std::string& token, const std::string& length,
                           const std::string& dataset = "vision/birds", char digest = 'a') {
    std::optional<net::HttpHeadRuling> ruling;
    net::HttpRequest head{
        .method = "PUT",
        .url = "/v1/datasets/" + dataset + "/manifests/" + std::string(64, digest),
        .headers = {{"Authorization", "Bearer " + token}}};
    if (!length.empty()) head.headers.emplace_back("Content-Length", length);
    server_->CheckHead(head, [&](net::HttpHeadRuling made) { ruling = std::move(made); });
    return ruling.value_or(net::HttpHeadRuling{});
  }
  static int StatusOf(const net::HttpHeadRuling& ruling) {
    return ruling.refusal ? ruling.refusal->status : 0;
  }

  std::optional<ManifestStore> store_;
  std::optional<net::WorkerThread> worker_;
  std::optional<ManifestServer> server_;
};

TEST_F(ManifestUploadTest, TheTokenIsCheckedBeforeTheBodyIsRead) {
  EXPECT_EQ(StatusOf(Rule("no token", "100")), 401);
  EXPECT_EQ(StatusOf(Rule("speech", "100")), 403);
  EXPECT_EQ(StatusOf(Rule("vision", "")), 411);
  EXPECT_EQ(StatusOf(Rule("vision", "a lot")), 411);
  const auto taken = Rule("vision", "100");
  EXPECT_FALSE(taken.refusal);
  EXPECT_NE(taken.hold, nullptr);
  EXPECT_NE(taken.sink, nullptr);
}

TEST_F(ManifestUploadTest, ANamespaceSendsOneAtATime) {
  auto first = Rule("vision", "100");
  EXPECT_FALSE(first.refusal);
  const auto second = Rule("vision", "100", "vision/birds", 'b');
  EXPECT_EQ(StatusOf(second), 503);
  EXPECT_TRUE(net::FindHeader(second.refusal->headers, "Retry-After"));
  const auto other = Rule("speech", "100", "speech/words", 'c');
  EXPECT_FALSE(other.refusal);
  first.hold.reset();  // answered, or its client has gone
  EXPECT_FALSE(Rule("vision", "100").refusal);
}

TEST_F(ManifestUploadTest, AllTogetherHaveALimit) {
  const auto first = Rule("vision", "600", "vision/birds", 'a');
  auto second = Rule("speech", "600", "speech/words", 'b');
  EXPECT_EQ(StatusOf(Rule("text", "600", "text/books", 'c')), 503);
  second.hold.reset();
  EXPECT_FALSE(Rule("text", "600", "text/books", 'c').refusal);
}

TEST_F(ManifestUploadTest, RoomIsTakenBeforeTheBodyAndGivenBack) {
  const ByteCount most = store_->limits().manifest_bytes;
  EXPECT_EQ(StatusOf(Rule("vision", std::to_string(most + 1))), 413);
  auto first = Rule("vision", std::to_string(most));
  EXPECT_FALSE(first.refusal);
  const auto second = Rule("speech", std::to_string(most), "speech/words", 'b');
  EXPECT_FALSE(second.refusal);
  first.hold.reset();
  EXPECT_FALSE(Rule("text", std::to_string(most), "text/books", 'c').refusal);
}

TEST_F(ManifestUploadTest, WithoutRoomABodyIsNotRead) {
  store_ = *ManifestStore::Open(dir_.Join("small"), SystemClock(),
                                {.bytes = 1000, .manifest_bytes = 800});
  const auto first = Rule("vision", "800");
  EXPECT_FALSE(first.refusal);
  const auto second = Rule("speech", "800", "speech/words", 'b');
  EXPECT_EQ(StatusOf(second), 503);
  EXPECT_NE(second.refusal->body.find("node.stateSize"), std::string::npos);
}

TEST_F(ManifestUploadTest, WhatTheNodeHasNeedNotBeSent) {
  const std::string digest(64, 'a');
  ASSERT_TRUE(store_->Reserve(digest, 100, "vision").ok());
  store_->Settle(digest, true);
  EXPECT_EQ(StatusOf(Rule("vision", "100")), 201);
}

// --- Fetching ----------------------------------------------------------------------------------

class ManifestFetcherTest : public ManifestManagerTest {
 protected:
  ManifestFetcherTest() {
    auto opened = ManifestStore::Open(dir_.Join("store"), SystemClock());
    EXPECT_TRUE(opened.has_value());
    store_.emplace(*std::move(opened));
    worker_.emplace(loop_, SystemClock());
    fetcher_.emplace(
        loop_,
        ManifestFetcher::Parts{
            .store = *store_,
            .worker = *worker_,
            .pieces = *worker_,
            .http = http_,
            .holders = [this](const std::string&) { return holders_; },
            .on_stored = [this](const std::string& digest) { stored_.push_back(digest); }},
        0);
  }

  std::optional<ManifestStore> store_;
  FakeHttp http_;
  std::vector<std::string> holders_ = {"https://a:1", "https://b:1"};
  std::vector<std::string> stored_;
  std::optional<net::WorkerThread> worker_;
  std::optional<ManifestFetcher> fetcher_;
};

TEST_F(ManifestFetcherTest, StoresWhatAHolderGives) {
  fetcher_->Want(digest_);
  ASSERT_EQ(http_.requests.size(), 1U);
  EXPECT_EQ(http_.requests[0].url, "https://a:1/v1/manifests/" + digest_);
  http_.Answer(net::HttpResponse{.body = std::string(manifest_.bytes())});
  net::RunUntil(loop_, [&] { return stored_.size() == 1; });
  EXPECT_TRUE(store_->Has(digest_));
  fetcher_->Want(digest_);
  EXPECT_EQ(http_.requests.size(), 1U) << "it has it";
}

TEST_F(ManifestFetcherTest, AsksTheNextHolderAfterWrongBytesAndFailures) {
  fetcher_->Want(digest_);
  http_.Answer(net::HttpResponse{.body = "something else"});
  net::RunUntil(loop_, [&] { return http_.requests.size() == 2; });
  EXPECT_TRUE(http_.requests[1].url.starts_with("https://b:1/"));
  http_.Answer(net::HttpResponse{.status = 404});
  net::RunUntil(loop_, [&] { return http_.requests.size() == 3; });
  EXPECT_TRUE(http_.requests[2].url.starts_with("https://a:1/"));
  EXPECT_FALSE(store_->Has(digest_));
}

TEST_F(ManifestFetcherTest, OnlySoManyAtATime) {
  for (const char c : {'1', '2', '3', '4'})
    fetcher_->Want(std::string(64, c));
  EXPECT_EQ(http_.requests.size(), ManifestFetcher::kAtOnce);
  http_.Answer(net::HttpResponse{.status = 404});
  EXPECT_EQ(http_.requests.size(), ManifestFetcher::kAtOnce + 1) << "the next has its turn";
}

TEST_F(ManifestFetcherTest, AnUploadedManifestLeavesItsTurnToTheNext) {
  for (const char c : {'1', '2', '3', '4', '5'})
    fetcher_->Want(std::string(64, c));
  for (const char c : {'3', '4'}) {
    const std::string uploaded(64, c);
    ASSERT_TRUE(store_->Reserve(uploaded, 100, "vision").ok());
    store_->Settle(uploaded, true);
  }
  for (std::size_t busy = 0; busy < ManifestFetcher::kAtOnce; ++busy)
    http_.Answer(net::HttpResponse{.status = 404});
  ASSERT_EQ(http_.requests.size(), ManifestFetcher::kAtOnce + 1);
  EXPECT_TRUE(http_.requests.back().url.ends_with(std::string(64, '5')));
}

TEST_F(ManifestFetcherTest, GivesUpWhatIsNoLongerWanted) {
  holders_.clear();
  fetcher_->Want(digest_);
  fetcher_->WantOnly({});
  holders_ = {"https://a:1"};
  fetcher_->Want(digest_);
  EXPECT_EQ(http_.requests.size(), 1U) << "wanted anew, it is asked for at once";
}

}  // namespace
}  // namespace optcache::node
