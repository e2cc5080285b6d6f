#include "kube/real_api_server.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "kube/api_client.h"
#include "kube/apply.h"
#include "kube/conditions.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/leader_election.h"
#include "support/growing_deadline.h"
#include "support/seeds.h"
#include "unit/kube/loop_fixture.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// One server for all tests: each has a namespace of its own.
class RealApiServerTest : public LoopFixture {
 protected:
  RealApiServerTest() : LoopFixture(minutes(3)) {}
  static void SetUpTestSuite() {
    const std::string bin = RealApiServer::FindBinaries();
    if (!bin.empty()) server = new RealApiServer(bin);
  }
  static void TearDownTestSuite() {
    delete server;
    server = nullptr;
  }
  void SetUp() override {
    if (server == nullptr) {
      GTEST_SKIP() << "no etcd and kube-apiserver: set OPTCACHE_CLUSTER_BIN to their directory";
    }
    client = MakeApiClient(loop, SystemClock(), server->admin());
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    ns = name.substr(0, 60);
    ASSERT_NO_FATAL_FAILURE(WaitUntilReady());
    ASSERT_TRUE(Create(kNamespaces, MakeObject(kNamespaces, {.ns = "", .name = ns})).has_value());
  }
  void TearDown() override {
    if (HasFailure() && server != nullptr) std::fprintf(stderr, "%s\n", server->Log().c_str());
  }

  // Asks again and again, for minutes; the question may run the loop.
  bool Eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 1800; ++i) {
      if (holds()) return true;
      RunFor(milliseconds(100));
    }
    return false;
  }
  // Its namespaces are there and it lets us in.
  void WaitUntilReady() {
    bool ready = false;
    std::function<void()> ask;
    net::Timer again;
    ask = [&] {
      client->Get(kNamespaces, {.ns = "", .name = "kube-system"},
                  [&](const ApiResult<Json>& answer) {
                    ready = answer.has_value();
                    if (!ready) again = loop.After(milliseconds(100), ask);
                  });
    };
    ask();
    RunUntil([&] { return ready; });
  }

  ApiResult<Json> Create(const Resource& resource, const Json& object) {
    return Wait([&](auto done) { client->Create(resource, object, done); });
  }
  ApiResult<Json> Get(const Resource& resource, const std::string& name) {
    return Wait([&](auto done) { client->Get(resource, {.ns = ns, .name = name}, done); });
  }
  ApiResult<Json> Apply(const Resource& resource, const Json& object, ApplyOptions options) {
    return Wait([&](auto done) { client->Apply(resource, object, options, done); });
  }
  ApiResult<void> Delete(const Resource& resource, const std::string& name,
                         const DeleteOptions& options = {}) {
    return Wait<void>(
        [&](auto done) { client->Delete(resource, {.ns = ns, .name = name}, options, done); });
  }
  Json ConfigMap(const std::string& name, const Json& data = Json::object()) const {
    Json object = MakeObject(kConfigMaps, {.ns = ns, .name = name});
    object["data"] = data;
    return object;
  }
  Json Pod(const std::string& name) const {
    Json pod = MakeObject(kPods, {.ns = ns, .name = name});
    pod["spec"]["containers"] = Json::array({{{"name", "main"}, {"image", "example"}}});
    return pod;
  }

  static RealApiServer* server;
  std::unique_ptr<ApiClient> client;
  std::string ns;
};

RealApiServer* RealApiServerTest::server = nullptr;

TEST_F(RealApiServerTest, MakesReadsReplacesAndDeletes) {
  const auto made = Create(kConfigMaps, ConfigMap("a", {{"k", "1"}}));
  ASSERT_TRUE(made.has_value()) << made.error().status.message();
  EXPECT_TRUE(Create(kConfigMaps, ConfigMap("a")).error().already_exists());
  Json changed = *made;
  changed["data"]["k"] = "2";
  const auto replace = [&](const Json& object) {
    return Wait([&](auto done) { client->Update(kConfigMaps, object, done); });
  };
  EXPECT_TRUE(replace(changed).has_value());
  EXPECT_TRUE(replace(changed).error().conflict());  // That version is no more.
  EXPECT_EQ(TextAt(*Get(kConfigMaps, "a"), "/data/k"), "2");
  EXPECT_TRUE(Delete(kConfigMaps, "a", {.uid = "another"}).error().conflict());
  EXPECT_TRUE(Delete(kConfigMaps, "a", {.uid = UidOf(*made)}).has_value());
  EXPECT_TRUE(Delete(kConfigMaps, "a").error().not_found());
  const auto invalid = Create(kConfigMaps, ConfigMap("Not_A_Name"));
  EXPECT_EQ(invalid.error().http_status, 422);
  EXPECT_EQ(invalid.error().reason, "Invalid");
}

TEST_F(RealApiServerTest, ServerSideApplyLeavesOthersAlone) {
  ASSERT_TRUE(Apply(kConfigMaps, ConfigMap("a", {{"theirs", "1"}, {"shared", "1"}}),
                    {.field_manager = "kubectl"})
                  .has_value());
  const auto refused = Apply(kConfigMaps, ConfigMap("a", {{"shared", "2"}}),
                             {.field_manager = "optcache-operator", .force = false});
  EXPECT_TRUE(refused.error().conflict());
  ASSERT_TRUE(Apply(kConfigMaps, ConfigMap("a", {{"shared", "2"}, {"ours", "1"}}),
                    {.field_manager = "optcache-operator"})
                  .has_value());
  const auto left_out =
      Apply(kConfigMaps, ConfigMap("a", {{"shared", "2"}}), {.field_manager = "optcache-operator"});
  ASSERT_TRUE(left_out.has_value());
  EXPECT_EQ((*left_out)["data"], Json({{"theirs", "1"}, {"shared", "2"}}));
}

TEST_F(RealApiServerTest, AnApplyThatChangesNothingIsNoWrite) {
  const auto apply = [&] {
    return Apply(kConfigMaps, ConfigMap("a", {{"k", "1"}}), {.field_manager = "m"});
  };
  const std::string first = ResourceVersionOf(*apply());
  EXPECT_EQ(ResourceVersionOf(*apply()), first);
}

TEST_F(RealApiServerTest, StatusIsWrittenBySubresource) {
  ASSERT_TRUE(Create(kPods, Pod("a")).has_value());
  Json wanted = MakeObject(kPods, {.ns = ns, .name = "a"});
  SetCondition(wanted["status"]["conditions"],
               {.type = "optcache.io/Ready",
                .status = ConditionStatus::kTrue,
                .reason = "Serving",
                .message = "",
                .observed_generation = 1},
               SystemClock().UnixSeconds());
  const auto applied =
      Apply(kPods, wanted, {.field_manager = "optcache-operator", .subresource = "status"});
  ASSERT_TRUE(applied.has_value()) << applied.error().status.message();
  EXPECT_EQ(ConditionOf(*applied, "optcache.io/Ready").status, ConditionStatus::kTrue);
  EXPECT_EQ(Items(*applied, "/spec/containers").size(), 1U);
}

TEST_F(RealApiServerTest, TheSteadyStateHasNoWrites) {
  Json job = MakeObject(kJobs, {.ns = ns, .name = "index"});
  job["spec"]["template"]["spec"] = {
      {"restartPolicy", "Never"},
      {"containers",
       Json::array({{{"name", "main"},
                     {"image", "example"},
                     {"resources", {{"limits", {{"memory", "1024Mi"}, {"cpu", "1000m"}}}}}}})}};
  Applier applier(*client, {.field_manager = "optcache-operator"});
  const auto run = [&](const ObjectCache::Entry& present) {
    return *Wait<ApplyOutcome>([&](auto done) {
      applier.Run({{.resource = kJobs, .object = job, .present = present}}, {}, done);
    });
  };
  EXPECT_EQ(run(nullptr).written, 1U);
  const auto shown = [&] { return std::make_shared<const Json>(*Get(kJobs, "index")); };
  EXPECT_EQ(run(shown()).skipped, 1U);
  // Others may write what is theirs.
  Json labelled = MakeObject(kJobs, {.ns = ns, .name = "index"});
  labelled["metadata"]["labels"]["by"] = "hand";
  ASSERT_TRUE(Apply(kJobs, labelled, {.field_manager = "kubectl"}).has_value());
  EXPECT_EQ(run(shown()).skipped, 1U);
}

TEST_F(RealApiServerTest, WithoutRightsItIsForbidden) {
  const auto nobody = MakeApiClient(loop, SystemClock(), server->nobody());
  const auto answer =
      Wait([&](auto done) { nobody->Get(kSecrets, {.ns = ns, .name = "a"}, done); });
  EXPECT_EQ(answer.error().status.code(), Code::kPermissionDenied);
  EXPECT_EQ(answer.error().http_status, 403);
  EXPECT_FALSE(answer.error().namespace_terminating);
}

TEST_F(RealApiServerTest, AServerOfAnotherCaOrNameIsNotTrusted) {
  ApiAccess access = server->admin();
  access.ca_file = server->folder() + "/other-ca.crt";
  const auto ask = [&] {
    const auto other = MakeApiClient(loop, SystemClock(), access);
    return Wait([&](auto done) { other->Get(kNamespaces, {.ns = "", .name = "default"}, done); });
  };
  EXPECT_EQ(ask().error().status.code(), Code::kPermissionDenied);
  access = server->admin();
  access.server_name = "kubernetes.example.org";
  EXPECT_EQ(ask().error().status.code(), Code::kPermissionDenied);
}

TEST_F(RealApiServerTest, ANamespaceOnItsWayOutTakesNothingNew) {
  // No controller runs here, so it stays on its way out.
  ASSERT_TRUE(Wait<void>([&](auto done) {
                client->Delete(kNamespaces, {.ns = "", .name = ns}, {}, done);
              }).has_value());
  const auto answer = Create(kConfigMaps, ConfigMap("a"));
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(answer.error().namespace_terminating) << answer.error().status.message();
}

TEST_F(RealApiServerTest, ReviewsTokens) {
  const auto good =
      Wait<TokenReview>([&](auto done) { client->ReviewToken("nobody-token", {}, done); });
  ASSERT_TRUE(good.has_value());
  EXPECT_TRUE(good->authenticated);
  EXPECT_EQ(good->username, "nobody");
  const auto bad = Wait<TokenReview>([&](auto done) { client->ReviewToken("forged", {}, done); });
  ASSERT_TRUE(bad.has_value());
  EXPECT_FALSE(bad->authenticated);
}

TEST_F(RealApiServerTest, EventsAreTakenAndCounted) {
  const auto pod = Create(kPods, Pod("train"));
  ASSERT_TRUE(pod.has_value());
  EventRecorderOptions options{.controller = "optcache.io/operator", .instance = "test"};
  options.series.update_first = milliseconds(200);
  EventRecorder recorder(loop, SystemClock(), *client, options);
  for (int i = 0; i < 100; ++i) {
    recorder.Record(ReferenceTo(kPods, *pod), {.type = EventType::kWarning,
                                               .reason = "NotInjected",
                                               .action = "Inject",
                                               .note = "the injector was away"});
  }
  Json events;
  EXPECT_TRUE(Eventually([&] {
    events = *Wait([&](auto done) { client->List(kEvents, {.ns = ns}, done); });
    return NumberAt(events, "/items/0/series/count") == 100;
  })) << events.dump(2);
  EXPECT_EQ(Items(events, "/items").size(), 1U);
  EXPECT_EQ(TextAt(events, "/items/0/regarding/name"), "train");
  // As `kubectl describe` reads it.
  const Resource core_events = {.version = "v1", .kind = "Event", .plural = "events"};
  const auto core = Wait([&](auto done) { client->List(core_events, {.ns = ns}, done); });
  EXPECT_EQ(TextAt(*core, "/items/0/message"), "the injector was away");
}

TEST_F(RealApiServerTest, OneOfTwoLeadsAndTheOtherSucceedsIt) {
  EXPECT_TRUE(HoldsForSomeDeadline(seconds(2), [&](Duration renew_deadline) {
    const Duration lease_duration = 3 * renew_deadline / 2;
    const std::string lease = "of-" + std::to_string(renew_deadline / seconds(1)) + "-seconds";
    const auto make = [&](const std::string& identity) {
      return std::make_unique<LeaderElector>(
          loop, SystemClock(), *client,
          LeaderElectionOptions{.lease = {.ns = ns, .name = lease},
                                .identity = identity,
                                .lease_duration = lease_duration,
                                .renew_deadline = renew_deadline,
                                .retry_period = milliseconds(200)},
          LeaderCallbacks{});
    };
    auto a = make("a");
    auto b = make("b");
    a->Start();
    RunUntil([&] { return a->IsLeader(); });
    b->Start();
    RunFor(lease_duration + seconds(1));
    // Else it was too slow to renew its lease.
    if (!a->IsLeader() || a->term() != 1 || b->leader() != "a") return false;
    bool released = false;
    a->Stop(minutes(1), [&] { released = true; });
    RunUntil([&] { return b->IsLeader() && released; });
    EXPECT_EQ(b->term(), 2U);
    EXPECT_EQ(TextAt(*Get(kLeases, lease), "/spec/holderIdentity"), "b");
    return true;
  }));
}

class RealInformerTest : public RealApiServerTest {
 protected:
  void Start() {
    informer = std::make_unique<Informer>(
        loop, SystemClock(), *client,
        InformerOptions{.resource = kConfigMaps,
                        .selection = {.ns = ns, .fields = "metadata.name!=kube-root-ca.crt"}});
    informer->OnChange([this](const ObjectChange& change) {
      if (!change.after) removed.push_back(change.key.name);
    });
    informer->Start();
    RunUntil([&] { return informer->synced(); });
  }
  bool Has(const std::string& name) {
    return informer->cache().Find({.ns = ns, .name = name}) != nullptr;
  }
  double Counter(std::string_view wanted) const {
    double found = -1;
    informer->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels&, double value) {
          if (name == wanted) found = value;
        });
    return found;
  }

  std::unique_ptr<Informer> informer;
  std::vector<std::string> removed;
};

TEST_F(RealInformerTest, ListsPagesAndFollowsChanges) {
  int made = 0;
  for (int i = 0; i < 1200; ++i) {
    client->Create(kConfigMaps, ConfigMap("c" + std::to_string(i)),
                   [&](const ApiResult<Json>& answer) { made += answer.has_value() ? 1 : 0; });
  }
  RunUntil([&] { return made == 1200; });
  Start();
  EXPECT_EQ(informer->cache().size(), 1200U);
  ASSERT_TRUE(Create(kConfigMaps, ConfigMap("late")).has_value());
  RunUntil([&] { return Has("late"); });
  ASSERT_TRUE(Delete(kConfigMaps, "c7").has_value());
  RunUntil([&] { return !Has("c7"); });
  EXPECT_EQ(removed, std::vector<std::string>{"c7"});
}

TEST_F(RealInformerTest, AVersionThatIsTooOldRelistsAndTellsDeletionsByDifference) {
  for (const char* name : {"stays", "goes"})
    ASSERT_TRUE(Create(kConfigMaps, ConfigMap(name)).has_value());
  Start();
  // The server goes, the world goes on without it, and a new one knows nothing of before.
  server->KillApiServer();
  server->StartSecondApiServer();
  auto elsewhere = MakeApiClient(loop, SystemClock(), server->admin_elsewhere());
  std::swap(client, elsewhere);
  WaitUntilReady();
  ASSERT_TRUE(Delete(kConfigMaps, "goes").has_value());
  ASSERT_TRUE(Create(kConfigMaps, ConfigMap("comes")).has_value());
  std::swap(client, elsewhere);
  EXPECT_TRUE(Has("goes"));
  server->StartApiServer();
  RunUntil([&] { return Has("comes") && !Has("goes"); });
  EXPECT_EQ(removed, std::vector<std::string>{"goes"});
  EXPECT_EQ(Counter("optcache_informer_lists_total"), 2);
  server->KillSecondApiServer();
}

TEST_F(RealInformerTest, APageTokenOfACompactedHistoryIsExpired) {
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(Create(kConfigMaps, ConfigMap(name)).has_value());
  const auto page = [&](const std::string& token) {
    return Wait([&](auto done) { client->ListPage(kConfigMaps, {.ns = ns}, 1, token, done); });
  };
  const std::string token = TextAt(*page(""), "/metadata/continue");
  ASSERT_FALSE(token.empty());
  // etcd is compacted every five seconds, up to where it was five seconds before.
  int made = 0;
  const bool expired = Eventually([&] {
    EXPECT_TRUE(Create(kConfigMaps, ConfigMap("more" + std::to_string(++made))).has_value());
    const auto answer = page(token);
    return !answer && answer.error().expired();
  });
  EXPECT_TRUE(expired);
}

TEST_F(RealInformerTest, ComesBackAfterAnOutage) {
  Start();
  server->KillApiServer();
  RunFor(seconds(3));
  server->StartApiServer();
  WaitUntilReady();
  ASSERT_TRUE(Create(kConfigMaps, ConfigMap("late")).has_value());
  RunUntil([&] { return Has("late"); });
  EXPECT_LE(Counter("optcache_informer_failures_total"), 12);
}

TEST_F(RealInformerTest, BookmarksComeWithinTheIdleDeadline) {
  if (!LongTests()) GTEST_SKIP() << "two minutes: OPTCACHE_LONG=1";
  Start();
  RunUntil([&] { return Counter("optcache_informer_events_total") > 0; }, seconds(140));
  EXPECT_EQ(Counter("optcache_informer_failures_total"), 0);
}

}  // namespace
}  // namespace optcache::kube
