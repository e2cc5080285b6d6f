// The operator as a whole against a fake API server, TLS and all.

#include "operator/manager/operator.h"

#include <set>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "coordination/codec.h"
#include "kube/conditions.h"
#include "kube/time_text.h"
#include "net/http_client.h"
#include "operator/api/cache_plan_types.h"
#include "operator/pki/objects.h"
#include "pki/pki.h"
#include "support/manual_clock.h"
#include "unit/kube/api_fixture.h"

namespace optcache::manager {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kSystem = "optcache-system";
constexpr const char* kDigest = "8b1f000000000001000000000000000000000000000000000000000000000000";
const kube::ObjectKey kLease{.ns = kSystem, .name = "optcache-operator"};
const kube::ObjectKey kDataset{.ns = "vision", .name = "imagenet"};

OperatorOptions Options(const std::string& pod) {
  return {.version = "0.1",
          .system_namespace = kSystem,
          .pod_name = pod,
          .pod_ip = "10.0.0.1",
          .sidecar_image = "optcache/sidecar:0.1",
          .webhook_address = "127.0.0.1:0",
          .control_address = "127.0.0.1:0",
          .pages_address = "127.0.0.1:0",
          .lease_duration = seconds(3),
          .renew_deadline = seconds(2),
          .retry_period = milliseconds(100),
          .shutdown_delay = milliseconds(50),
          .drain_timeout = seconds(2)};
}

class OperatorTest : public kube::ApiFixture {
 protected:
  OperatorTest() {
    server.store([](kube::FakeApiStore& store) {
      store.Put(kube::kSecrets,
                kube::MakeObject(kube::kSecrets, {.ns = kSystem, .name = "optcache-pki"}));
      Json injector = kube::MakeObject(kube::kMutatingWebhookConfigurations,
                                       {.ns = "", .name = "optcache-injector"});
      injector["webhooks"] = Json::array(
          {{{"name", "label.optcache.io"}, {"clientConfig", {{"service", {{"name", "s"}}}}}}});
      store.Put(kube::kMutatingWebhookConfigurations, injector);
      store.SetToken("node-token",
                     {{"username", "system:serviceaccount:optcache-system:optcache-node"},
                      {"extra", {{"authentication.kubernetes.io/pod-name", {"optcache-node-x"}}}}});
    });
  }

  std::unique_ptr<Operator> Start(const std::string& pod) {
    auto started = Operator::Start(loop, SystemClock(), {.server = server.url()}, Options(pod),
                                   [this](std::string why) { ends.push_back(std::move(why)); });
    EXPECT_TRUE(started) << started.error().message();
    return *std::move(started);
  }
  void PutDataset() {
    Json dataset = kube::MakeObject(api::kDatasets, kDataset);
    dataset["metadata"]["generation"] = 1;
    dataset["spec"] = Json::parse(
        R"({"source": {"http": {"baseURL": "http://store/images/"}}, "cache": {"capacity": "30%"},
            "access": [{"namespace": "speech"}]})");
    server.store([&](kube::FakeApiStore& store) { store.Put(api::kDatasets, dataset); });
  }
  Json Bundle(const std::string& ns) {
    return server.Find(kube::kConfigMaps, {.ns = ns, .name = authority::kBundleName});
  }
  Json FirstJob() {
    Json job;
    server.store([&](kube::FakeApiStore& store) {
      const auto jobs = store.List(kube::kJobs);
      if (!jobs.empty()) job = jobs.front();
    });
    return job;
  }
  // As Kubernetes would when the index Job has ended well.
  void FinishJob() {
    Json job = FirstJob();
    job["status"] = Json::parse(
        R"({"completionTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Complete", "status": "True"}]})");
    Json pod = kube::MakeObject(kube::kPods, {.ns = "vision", .name = "index-pod"});
    pod["metadata"]["labels"] = job["spec"]["template"]["metadata"]["labels"];
    pod["metadata"]["labels"]["job-name"] = kube::KeyOf(job).name;
    pod["status"]["containerStatuses"] = Json::array(
        {{{"name", "index"},
          {"state",
           {{"terminated",
             {{"exitCode", 0},
              {"message", std::string(R"({"digest": ")") + kDigest +
                              R"(", "samples": 1000, "bytes": 100000, "largest": 500})"}}}}}}});
    server.store([&](kube::FakeApiStore& store) {
      store.Put(kube::kPods, pod);
      store.Put(kube::kJobs, job);
    });
  }
  std::string StatusText(const std::string& pointer) {
    return kube::TextAt(server.Find(api::kDatasets, kDataset), pointer);
  }
  // A response of the control server to a client with `material`.
  net::HttpResponse Ask(const Operator& op, net::HttpRequest request,
                        const net::TlsMaterial& material) {
    auto tls = std::make_shared<net::TlsContext>(net::TlsRole::kClient);
    EXPECT_TRUE(tls->Replace(material).ok());
    const auto control = net::MakeHttpClient(
        loop, {.tls = tls, .server_name = "optcache-operator.optcache-system.svc"});
    request.url = "https://127.0.0.1:" + std::to_string(op.control_port()) + request.url;
    std::optional<net::HttpResponse> response;
    control->Send(std::move(request), seconds(10), [&](Result<net::HttpResponse> answer) {
      EXPECT_TRUE(answer) << answer.error().message();
      response = answer ? *std::move(answer) : net::HttpResponse{.status = 0};
    });
    RunUntil([&] { return response.has_value(); });
    return *response;
  }
  // What a node gets for its token.
  net::TlsMaterial NodeMaterial(const Operator& op) {
    const std::string trust = kube::TextAt(Bundle(kSystem), "/data/ca.crt");
    const std::string key = pki::MakeKey().value();
    const auto answer = Ask(op,
                            {.method = "POST",
                             .url = "/v1/certificates",
                             .headers = {{"Authorization", "Bearer node-token"}},
                             .body = pki::MakeRequest(key, {"anything"}).value()},
                            {.trust = trust});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return {.chain = answer.body, .key = key, .trust = trust};
  }

  std::vector<std::string> ends;
};

TEST_F(OperatorTest, TheLeaderMakesCertificatesAndTellsEverybodyWhomToTrust) {
  const auto op = Start("a");
  RunUntil([&] { return op->Ready().ok() && !Bundle(kSystem).is_null(); });
  EXPECT_TRUE(op->leads());
  const auto content =
      authority::ReadSecret(server.Find(kube::kSecrets, {.ns = kSystem, .name = "optcache-pki"}));
  const std::string bundle = content.at("ca.crt");
  EXPECT_EQ(kube::TextAt(Bundle(kSystem), "/data/ca.crt"), bundle);
  RunUntil([&] {
    return kube::TextAt(server.Find(kube::kMutatingWebhookConfigurations,
                                    {.ns = "", .name = "optcache-injector"}),
                        "/webhooks/0/clientConfig/caBundle") == EncodeBase64(bundle);
  });
}

TEST_F(OperatorTest, ADatasetIsIndexedAndPlaced) {
  PutDataset();
  const auto op = Start("a");
  RunUntil([&] {
    return !FirstJob().is_null() && !Bundle("vision").is_null() && !Bundle("speech").is_null();
  });
  EXPECT_EQ(kube::ControllerOf(FirstJob())->name, "imagenet");
  EXPECT_EQ(kube::TextAt(Bundle("vision"), "/metadata/ownerReferences/0/name"), "imagenet");
  EXPECT_TRUE(kube::Find(Bundle("speech"), "/metadata/ownerReferences").is_null());
  RunUntil([&] { return !server.Find(api::kCachePlans, kDataset).is_null(); });
  FinishJob();
  RunUntil([&] { return StatusText("/status/manifestDigest") == kDigest; });

  // A node reports, with its own certificate; then the Dataset has a place.
  const net::TlsMaterial node = NodeMaterial(*op);
  const coordination::Report report{.node = "optcache-node-x",
                                    .incarnation = 1,
                                    .address = "10.0.0.9:4100",
                                    .capacity = 1_MiB,
                                    .manifest_url = "https://10.0.0.9:4102",
                                    .manifests = {kDigest}};
  Json pod = kube::MakeObject(kube::kPods, {.ns = kSystem, .name = "optcache-node-x"});
  pod["metadata"]["labels"] = {{"app.kubernetes.io/name", "optcache"},
                               {"app.kubernetes.io/component", "node"}};
  pod["spec"]["nodeName"] = "machine-x";
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  // A leader that has just begun learns first, and refuses who has no id yet.
  net::HttpResponse answer{.status = 503};
  for (int tries = 0; tries < 100 && answer.status == 503; ++tries) {
    answer = Ask(*op, {.method = "POST", .url = "/v1/report", .body = coordination::ToJson(report)},
                 node);
    RunFor(milliseconds(100));
  }
  EXPECT_EQ(answer.status, 200) << answer.body;
  Result<coordination::DesiredState> state = coordination::DesiredState{};
  for (int tries = 0; tries < 100; ++tries) {
    state = coordination::ParseDesiredState(
        Ask(*op, {.url = "/v1/state?after=0.0&member=optcache-node-x"}, node).body);
    ASSERT_TRUE(state) << state.error().message();
    if (!state->datasets.empty() && !state->datasets[0].capacities.empty()) break;
    RunFor(milliseconds(50));  // until the node is given its share
  }
  ASSERT_EQ(state->datasets.size(), 1U);
  EXPECT_EQ(state->datasets[0].manifest_digest, kDigest);
  EXPECT_EQ(state->datasets[0].namespaces, (std::vector<std::string>{"vision", "speech"}));
  ASSERT_EQ(state->datasets[0].capacities.size(), 1U);
  EXPECT_EQ(state->datasets[0].capacities[0].bytes, 30000U);
  RunUntil([&] { return StatusText("/status/nodes/0/name") == "machine-x"; });
  RunUntil([&] {
    return kube::ConditionOf(server.Find(api::kDatasets, kDataset), "Ready").status ==
           kube::ConditionStatus::kTrue;
  });
}

TEST_F(OperatorTest, WritesNothingWhileNothingChanges) {
  PutDataset();
  const auto op = Start("a");
  RunUntil([&] {
    return op->Ready().ok() && !Bundle("speech").is_null() && !FirstJob().is_null() &&
           !server.Find(api::kCachePlans, kDataset).is_null() &&
           StatusText("/status/observedGeneration") == "1";
  });
  RunFor(seconds(1));
  server.ForgetRequests();
  RunFor(seconds(2));
  EXPECT_GT(server.Count("update", "leases"), 0U);
  EXPECT_EQ(server.Writes(), server.Count("update", "leases"));
}

TEST_F(OperatorTest, ANamespaceThatIsNotThereYetIsNoErrorAndIsLookedAtAgain) {
  PutDataset();
  const kube::FakeFault missing{
      .response = {.status = 404,
                   .body = {{"reason", "NotFound"}, {"details", {{"kind", "namespaces"}}}}}};
  server.FailNext("apply", "configmaps", missing, 1000);
  const auto op = Start("a");
  RunUntil([&] { return server.Count("apply", "configmaps") >= 3; });
  const auto reader = net::MakeHttpClient(loop, {});
  std::string page;
  reader->Send({.url = "http://127.0.0.1:" + std::to_string(op->pages_port()) + "/metrics"},
               seconds(10), [&](Result<net::HttpResponse> answer) { page = answer.value().body; });
  RunUntil([&] { return !page.empty(); });
  EXPECT_NE(page.find(R"(optcache_reconcile_total{controller="ca-bundle",result="requeue_after"})"),
            std::string::npos);
  EXPECT_EQ(page.find(R"(optcache_reconcile_total{controller="ca-bundle",result="error"})"),
            std::string::npos);
}

TEST_F(OperatorTest, APodInANamespaceWithAccessBringsTheBundleThere) {
  PutDataset();
  const auto op = Start("a");
  RunUntil([&] {
    return !Bundle("speech").is_null() && !Bundle("vision").is_null() && !Bundle(kSystem).is_null();
  });
  RunFor(milliseconds(300));
  const kube::FakeFault going{
      .response = {.status = 403,
                   .body = {{"reason", "Forbidden"},
                            {"details", {{"causes", {{{"reason", "NamespaceTerminating"}}}}}}}}};
  server.FailNext("apply", "configmaps", going);
  server.store([](kube::FakeApiStore& store) {  // The namespace goes with all that is in it.
    store.Remove(kube::kConfigMaps, {.ns = "speech", .name = authority::kBundleName});
  });
  RunFor(milliseconds(300));
  EXPECT_TRUE(Bundle("speech").is_null());
  Json pod = kube::MakeObject(kube::kPods, {.ns = "speech", .name = "train-0"});
  pod["metadata"]["labels"] = {{"optcache.io/inject", "true"}};
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  RunUntil([&] { return !Bundle("speech").is_null(); });
}

TEST_F(OperatorTest, APlanThatItsUserIsMakingStaysTheUsers) {
  Json plan = kube::MakeObject(api::kCachePlans, kDataset);
  plan["spec"] = {{"dataset", "imagenet"}, {"retention", "Pin"}};
  // The operator does not see it: its watch stands still.
  const auto op = Start("a");
  RunUntil([&] { return op->Ready().ok() && op->leads(); });
  server.FailNext("list", "cacheplans", {.response = {.status = 500}}, 1000);
  server.set_mute(true);
  server.store([&](kube::FakeApiStore& store) { store.Put(api::kCachePlans, plan); });
  server.set_mute(false);
  PutDataset();
  RunUntil([&] { return !FirstJob().is_null(); });
  RunFor(milliseconds(300));
  const Json stored = server.Find(api::kCachePlans, kDataset);
  EXPECT_EQ(kube::TextAt(stored, "/spec/retention"), "Pin");
  EXPECT_TRUE(kube::Find(stored, "/metadata/ownerReferences").is_null());
}

TEST_F(OperatorTest, NeverWritesItsSecretOverOneThatItHasNotSeen) {
  const auto op = Start("a");
  RunUntil([&] { return op->Ready().ok() && op->leads(); });
  std::size_t without = 0;
  for (const kube::FakeRequest& request : server.requests()) {
    if (request.method != "PATCH" || request.path.find("/secrets/") == std::string::npos) continue;
    const Json body = Json::parse(request.body);
    if (kube::ResourceVersionOf(body).empty()) ++without;
  }
  EXPECT_EQ(without, 0U);
}

TEST_F(OperatorTest, ItsWatchesDoNotEndAllAtOnce) {
  const auto op = Start("a");
  RunUntil([&] { return op->Ready().ok(); });
  RunUntil([&] { return server.open_watches() >= 10; });
  std::set<std::string> ends_at;
  for (const kube::FakeRequest& request : server.requests()) {
    const auto timeout = request.query.find("timeoutSeconds");
    if (timeout != request.query.end()) ends_at.insert(timeout->second);
  }
  EXPECT_GE(ends_at.size(), 8U);
}

TEST_F(OperatorTest, ADatasetThatIsGoneTakesItsBundlesAlong) {
  PutDataset();
  const auto op = Start("a");
  RunUntil([&] { return !Bundle("speech").is_null(); });
  server.store([](kube::FakeApiStore& store) { store.Remove(api::kDatasets, kDataset); });
  RunUntil([&] { return Bundle("speech").is_null(); });
  EXPECT_FALSE(Bundle(kSystem).is_null());
}

TEST_F(OperatorTest, OneThatDoesNotLeadServesAndNamesTheLeader) {
  const auto leader = Start("a");
  RunUntil([&] { return leader->leads() && leader->Ready().ok() && !Bundle(kSystem).is_null(); });
  const auto follower = Start("b");
  RunUntil([&] { return follower->Ready().ok(); });
  EXPECT_FALSE(follower->leads());
  const auto answer = Ask(*follower, {.url = "/v1/status"}, NodeMaterial(*leader));
  EXPECT_EQ(answer.status, 307);
  EXPECT_EQ(net::FindHeader(answer.headers, "Location"), "https://10.0.0.1:8443/v1/status");
}

TEST_F(OperatorTest, ALeaderThatStillLearnsWhatThereIsSendsNobodyToItself) {
  server.FailNext("list", "nodes",
                  {.kind = kube::FakeFault::Kind::kRespond, .response = {.status = 500}}, 1000);
  const auto op = Start("a");
  RunUntil([&] { return op->leads() && !Bundle(kSystem).is_null(); });
  const auto answer = Ask(*op, {.method = "POST", .url = "/v1/certificates"},
                          {.trust = kube::TextAt(Bundle(kSystem), "/data/ca.crt")});
  EXPECT_EQ(answer.status, 503);
}

TEST_F(OperatorTest, AnOutageOfTheApiServerEndsTheLeadershipAndNotTheProcess) {
  const auto op = Start("a");
  RunUntil([&] { return op->leads() && op->Ready().ok(); });
  server.Stop();
  RunUntil([&] { return !op->leads(); });
  EXPECT_TRUE(op->Ready().ok());
  server.Start();
  RunUntil([&] { return op->leads(); });
  EXPECT_TRUE(ends.empty());
  PutDataset();  // It works as before.
  RunUntil([&] { return !FirstJob().is_null() && !Bundle("speech").is_null(); });
}

TEST_F(OperatorTest, EndsWhenItWasFrozenPastItsLease) {
  ManualClock frozen;
  frozen.Advance(seconds(1));
  const auto started = Operator::Start(loop, frozen, {.server = server.url()}, Options("a"),
                                       [this](std::string why) { ends.push_back(std::move(why)); });
  ASSERT_TRUE(started) << started.error().message();
  RunUntil([&] { return (*started)->leads(); });
  frozen.Advance(seconds(60));
  RunUntil([&] { return !ends.empty(); });
  EXPECT_FALSE((*started)->leads());
}

TEST_F(OperatorTest, FollowsWhenTheLeaseIsTaken) {
  const auto op = Start("a");
  RunUntil([&] { return op->leads(); });
  Json lease = server.Find(kube::kLeases, kLease);
  lease["spec"]["holderIdentity"] = "b_10.0.0.2";
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kLeases, lease); });
  RunUntil([&] { return !op->leads(); });
  EXPECT_TRUE(ends.empty());
}

TEST_F(OperatorTest, GivesTheLeaseBackAtItsEndAndAnotherTakesItAtOnce) {
  auto op = Start("a");
  RunUntil([&] { return op->leads(); });
  const auto other = Start("b");
  bool stopped = false;
  op->Stop([&] { stopped = true; });
  EXPECT_EQ(op->Ready().message(), "stopping");
  RunUntil([&] { return stopped && other->leads(); });
  EXPECT_TRUE(ends.empty());
}

TEST_F(OperatorTest, TellsTheOwnerOfAPodThatCameWithoutItsSidecar) {
  const auto op = Start("a");
  RunUntil([&] { return op->leads() && op->Ready().ok(); });
  Json pod = kube::MakeObject(kube::kPods, {.ns = "vision", .name = "train-0"});
  pod["metadata"]["labels"] = {{"optcache.io/inject", "true"}};
  pod["metadata"]["creationTimestamp"] = kube::FormatTime(SystemClock().UnixSeconds());
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                     {"kind", "Job"},
                                                     {"name", "train"},
                                                     {"uid", "u"},
                                                     {"controller", true}}});
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  RunUntil([&] {
    bool told = false;
    server.store([&](kube::FakeApiStore& store) {
      for (const Json& event : store.List(kube::kEvents)) {
        told = told || (kube::TextAt(event, "/reason") == "NotInjected" &&
                        kube::TextAt(event, "/regarding/name") == "train");
      }
    });
    return told;
  });
}

TEST(UrlOfLeader, IsInItsIdentity) {
  EXPECT_EQ(UrlOfLeader("optcache-operator-7f_10.0.0.7", 8443), "https://10.0.0.7:8443");
  EXPECT_EQ(UrlOfLeader("optcache-operator-7f_fd00::7", 8443), "https://[fd00::7]:8443");
  EXPECT_EQ(UrlOfLeader("", 8443), "");
  EXPECT_EQ(UrlOfLeader("somebody", 8443), "");
  EXPECT_EQ(UrlOfLeader("somebody_", 8443), "");
}

}  // namespace
}  // namespace optcache::manager
