// The operator as a whole against a fake API server, TLS and all.

#include "operator/manager/operator.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "coordination/codec.h"
#include "kube/conditions.h"
#include "operator/api/resources.h"
#include "operator/pki/objects.h"
#include "support/growing_deadline.h"
#include "support/manual_clock.h"
#include "unit/operator/operator_fixture.h"

namespace optcache::manager {
namespace {

using OperatorTest = OperatorFixture;

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

  const net::TlsMaterial node = JoinNode(*op);  // then the Dataset has a place
  Result<coordination::DesiredState> state = coordination::DesiredState{};
  for (int tries = 0; tries < 2400; ++tries) {  // two minutes
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

TEST_F(OperatorTest, AnIndexJobMayBeSeenToEndBeforeItsPod) {
  PutDataset();
  const auto op = Start("a");
  RunUntil([&] { return !FirstJob().is_null(); });
  CompleteJob();
  RunUntil([&] {
    return kube::ConditionOf(server.Find(api::kDatasets, kDataset), "Indexed")
        .message.ends_with("what it said is awaited");
  });
  EndPodOfJob();
  RunUntil([&] { return StatusText("/status/manifestDigest") == kDigest; });
  EXPECT_EQ(server.Count("delete", "jobs"), 0U);
}

TEST_F(OperatorTest, JobsThatAskForGpusAreKnownToPlacement) {
  PutDataset();
  Json machine = kube::MakeObject(kube::kNodes, {.ns = "", .name = "machine-x"});
  machine["status"]["allocatable"] = {{"nvidia.com/gpu", "8"}};
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kNodes, machine); });
  const auto op = Start("a");
  RunUntil([&] { return !FirstJob().is_null() && !Bundle(kSystem).is_null(); });
  FinishJob();
  JoinNode(*op);
  RunUntil([&] { return PlacementSays("GPU: not asked for"); });

  Json pod = kube::MakeObject(kube::kPods, {.ns = "vision", .name = "train-0"});
  pod["metadata"]["labels"] = {{"optcache.io/inject", "true"}};
  pod["metadata"]["annotations"] = {{"optcache.io/dataset", "imagenet"}};
  pod["spec"]["containers"] =
      Json::array({{{"name", "train"}, {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}});
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  RunUntil([&] { return PlacementSays("GPU: 1 nodes first"); });
  pod["status"]["phase"] = "Succeeded";
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  RunUntil([&] { return PlacementSays("GPU: not asked for"); });
  pod["metadata"]["name"] = "train-1";
  pod["status"]["phase"] = "Running";
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  RunUntil([&] { return PlacementSays("GPU: 1 nodes first"); });
  server.store([&](kube::FakeApiStore& store) { store.Remove(kube::kPods, kube::KeyOf(pod)); });
  RunUntil([&] { return PlacementSays("GPU: not asked for"); });
}

TEST_F(OperatorTest, TheLeaderAloneShowsTheConditionsOfDatasetsAsMetrics) {
  PutDataset();
  const auto leader = Start("a");
  RunUntil([&] { return leader->leads() && leader->Ready().ok(); });
  const auto follower = Start("b");
  RunUntil([&] { return follower->Ready().ok(); });
  const std::string shown =
      R"(optcache_dataset_condition{dataset="vision/imagenet",condition="Indexed",status="false"} 1)";
  std::string page;
  for (int tries = 0; tries < 2400 && page.find(shown) == std::string::npos; ++tries) {
    RunFor(milliseconds(50));
    page = MetricsOf(*leader);
  }
  EXPECT_NE(page.find(shown), std::string::npos) << page;
  EXPECT_EQ(MetricsOf(*follower).find("optcache_dataset_condition{"), std::string::npos);
}

TEST_F(OperatorTest, WritesNothingWhileNothingChanges) {
  PutDataset();
  const auto op = Start("a");
  RunUntil([&] {
    return op->Ready().ok() && !Bundle("speech").is_null() && !FirstJob().is_null() &&
           !server.Find(api::kCachePlans, kDataset).is_null() &&
           StatusText("/status/observedGeneration") == "1";
  });
  const auto is_quiet = [&] {
    RunFor(seconds(1));
    server.ForgetRequests();
    RunFor(seconds(2));
    return server.Writes() == server.Count("update", "leases");
  };
  // What came before takes its time to settle where the machine is busy.
  bool quiet = is_quiet();
  for (int tries = 0; tries < 4 && !quiet; ++tries)
    quiet = is_quiet();
  EXPECT_TRUE(quiet);
  RunUntil([&] { return server.Count("update", "leases") > 0; });
}

TEST_F(OperatorTest, ANamespaceThatIsNotThereYetIsNoErrorAndIsLookedAtAgain) {
  PutDataset();
  const kube::FakeFault missing{
      .response = {.status = 404,
                   .body = {{"reason", "NotFound"}, {"details", {{"kind", "namespaces"}}}}}};
  server.FailNext("apply", "configmaps", missing, 1000);
  const auto op = Start("a");
  RunUntil([&] { return server.Count("apply", "configmaps") >= 3; });
  const std::string page = MetricsOf(*op);
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
  const kube::FakeFault going{
      .response = {.status = 403,
                   .body = {{"reason", "Forbidden"},
                            {"details", {{"causes", {{{"reason", "NamespaceTerminating"}}}}}}}}};
  // What the operator had begun before, and what it makes of the loss, is over by then, or later.
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(300), [&](Duration settled) {
    server.ForgetRequests();
    server.FailNext("apply", "configmaps", going, 1000);
    server.store([](kube::FakeApiStore& store) {  // The namespace goes with all that is in it.
      store.Remove(kube::kConfigMaps, {.ns = "speech", .name = authority::kBundleName});
    });
    RunUntil([&] {
      return std::ranges::any_of(server.requests(), [](const kube::FakeRequest& request) {
        return request.method == "PATCH" && request.path.contains("/speech/configmaps/");
      });
    });
    RunFor(settled);
    server.FailNoMore();
    RunFor(settled);
    return Bundle("speech").is_null();
  }));
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

TEST_F(OperatorTest, TellsOfCertificatesThatAreWrittenAndOfNoOthers) {
  server.FailNext("apply", "secrets", {.response = {.status = 403}});
  const auto op = Start("a");
  RunUntil([&] { return server.Count("apply", "secrets") == 1; });
  RunFor(milliseconds(200));
  EXPECT_EQ(server.Count("apply", "events"), 0U);
  server.store([](kube::FakeApiStore& store) {  // it looks again at once
    Json secret = kube::MakeObject(kube::kSecrets, {.ns = kSystem, .name = "optcache-pki"});
    secret["metadata"]["labels"] = {{"app", "optcache"}};
    store.Put(kube::kSecrets, secret);
  });
  RunUntil([&] { return server.Count("apply", "events") > 0; });
  EXPECT_EQ(server.Count("apply", "secrets"), 2U);
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
  const auto review = Review(*follower);
  EXPECT_EQ(review.status, 200);
  EXPECT_NE(review.body.find(R"("allowed":true)"), std::string::npos) << review.body;
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
  OperatorOptions options = Options("a");
  options.renew_deadline = seconds(2);  // Who stands still until the end of the lease is frozen.
  options.lease_duration = minutes(2);
  const auto op = Start(options);
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

TEST_F(OperatorTest, WhatANodeSaysWasSavedIsInTheStatusOfTheDataset) {
  PutDataset();
  const auto op = Start("a");
  RunUntil([&] { return !FirstJob().is_null(); });
  FinishJob();
  RunUntil([&] { return StatusText("/status/manifestDigest") == kDigest; });
  JoinNode(*op,
           {.number = 1, .datasets = {{.dataset = kDataset.ToString(), .saved = {.requests = 9}}}});
  RunUntil([&] {
    return kube::NumberAt(server.Find(api::kDatasets, kDataset), "/status/saved/requests") == 9;
  });
}

TEST_F(OperatorTest, TellsTheOwnerOfAPodThatCameWithoutItsSidecar) {
  const auto op = Start("a");
  RunUntil([&] { return op->leads() && op->Ready().ok(); });
  PutUninjectedPod("vision", seconds(0));
  RunUntil([&] { return TimesTold("vision") == 1; });
}

TEST_F(OperatorTest, TellsTheOwnerOfAPodWhatWasMeasuredInIt) {
  PutMeasuredPod("yesterday", hours(24), "done");
  const auto op = Start("a");
  RunUntil([&] { return op->leads() && op->Ready().ok(); });
  PutMeasuredPod("vision", seconds(0), "done");
  PutMeasuredPod("speech", seconds(0), "ended early");
  RunUntil([&] {
    return TimesTold("vision", "HeadspaceMeasured") == 1 &&
           TimesTold("speech", "HeadspaceNotMeasured") == 1;
  });
  EXPECT_EQ(TimesTold("yesterday", "HeadspaceMeasured"), 0U);
}

TEST_F(OperatorTest, TellsTheOwnerOfAPodWhatWasSavedInIt) {
  const Json said = {{"saved", {{"message", "saved 9 requests."}}}};
  PutEndedPod("yesterday", hours(24), said);
  const auto op = Start("a");
  RunUntil([&] { return op->leads() && op->Ready().ok(); });
  PutEndedPod("vision", seconds(0), said);
  RunUntil([&] { return TimesTold("vision", "Saved") == 1; });
  EXPECT_EQ(TimesTold("yesterday", "Saved"), 0U);
  server.store([](kube::FakeApiStore& store) {
    for (const Json& event : store.List(kube::kEvents)) {
      if (kube::TextAt(event, "/reason") != "Saved") continue;
      EXPECT_EQ(kube::TextAt(event, "/note"), "pod train-0: saved 9 requests.");
    }
  });
}

TEST_F(OperatorTest, ALeaderTellsOfPodsThatCameInTheOutageBeforeIt) {
  PutUninjectedPod("vision", minutes(10));
  PutUninjectedPod("yesterday", hours(24));
  PutUninjectedPod("kube-system", minutes(10));
  const auto op = Start("a");
  RunUntil([&] { return TimesTold("vision") == 1; });
  RunFor(milliseconds(300));
  EXPECT_EQ(TimesTold("vision"), 1U);
  EXPECT_EQ(TimesTold("yesterday"), 0U);
  EXPECT_EQ(TimesTold("kube-system"), 0U);
  EXPECT_NE(MetricsOf(*op).find("optcache_uninjected_pods 2"), std::string::npos);
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
