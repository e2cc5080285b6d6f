// The smaller parts of operator/manager.

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "operator/api/resources.h"
#include "operator/manager/check_injection.h"
#include "operator/manager/condition_metrics.h"
#include "operator/manager/dataset_directory.h"
#include "operator/manager/injection_watch.h"
#include "operator/manager/last_word_watch.h"
#include "operator/manager/node_tokens.h"
#include "operator/manager/plan_metrics.h"
#include "operator/manager/reconcilers.h"
#include "operator/manager/warmup_metrics.h"
#include "operator/manager/watches.h"
#include "operator/webhook/review.h"
#include "unit/kube/api_fixture.h"

namespace optcache::manager {
namespace {

using kube::Json;

// --- Tokens of nodes ----------------------------------------------------------------------------

class NodePodOfTest : public testing::Test {
 protected:
  Code Refusal() const {
    const auto pod = NodePodOf(review_, options_);
    return pod ? Code::kOk : pod.error().code();
  }

  const OperatorOptions options_{.name = "oc", .system_namespace = "sys"};
  kube::TokenReview review_{.authenticated = true,
                            .username = "system:serviceaccount:sys:oc-node",
                            .extra = {{"authentication.kubernetes.io/pod-name", {"oc-node-x"}}},
                            .audiences = {"optcache"}};
};

TEST_F(NodePodOfTest, IsThePodOfANodesToken) {
  EXPECT_EQ(NodePodOf(review_, options_), "oc-node-x");
}

TEST_F(NodePodOfTest, TakesNoOtherToken) {
  review_.username = "system:serviceaccount:vision:oc-node";
  EXPECT_EQ(Refusal(), Code::kPermissionDenied);
  review_.username = "system:serviceaccount:sys:default";
  EXPECT_EQ(Refusal(), Code::kPermissionDenied);
}

TEST_F(NodePodOfTest, TakesNoTokenForSomebodyElse) {
  review_.audiences = {"https://kubernetes.default.svc"};
  EXPECT_EQ(Refusal(), Code::kPermissionDenied);
}

TEST_F(NodePodOfTest, TakesNoTokenThatIsInvalidOrBoundToNoPod) {
  review_.extra.clear();
  EXPECT_EQ(Refusal(), Code::kPermissionDenied);
  review_ = {.authenticated = false, .error = "token has expired"};
  EXPECT_EQ(NodePodOf(review_, options_).error().message(),
            "the token is not valid: token has expired");
}

// --- What is kept of objects --------------------------------------------------------------------

TEST(Reduce, AMachineIsItsLabelsGpusAndVersion) {
  Json node = Json::parse(R"({
    "kind": "Node",
    "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "labels": {"pool": "gpu"},
                 "annotations": {"csi": "long"}, "managedFields": []},
    "spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24"},
    "status": {"allocatable": {"cpu": "64", "nvidia.com/gpu": "8"}, "images": [{"names": ["x"]}],
               "nodeInfo": {"kubeletVersion": "v1.36.3", "bootID": "b"}}})");
  ReduceNode(node);
  EXPECT_EQ(node, Json::parse(R"({
    "kind": "Node",
    "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "labels": {"pool": "gpu"}},
    "spec": {"unschedulable": true},
    "status": {"allocatable": {"nvidia.com/gpu": "8"},
               "nodeInfo": {"kubeletVersion": "v1.36.3"}}})"));
}

TEST(Reduce, ATrainingPodIsWhatPlacementAndWarningsAskFor) {
  Json pod = Json::parse(R"({
    "metadata": {"name": "p", "namespace": "vision", "uid": "u", "generateName": "p-",
                 "labels": {"optcache.io/inject": "true", "pod-template-hash": "x"},
                 "annotations": {"optcache.io/dataset": "d", "optcache.io/injected": "0.1",
                                 "optcache.io/optional": "true", "cni": "long"},
                 "ownerReferences": [{"kind": "Job", "name": "j", "controller": true}]},
    "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    "status": {"phase": "Running", "podIP": "10.0.0.7"}})");
  ReduceTrainingPod(pod);
  EXPECT_EQ(pod, Json::parse(R"({
    "metadata": {"name": "p", "namespace": "vision", "uid": "u",
                 "labels": {"optcache.io/inject": "true"},
                 "annotations": {"optcache.io/dataset": "d", "optcache.io/injected": "0.1",
                                 "optcache.io/optional": "true"},
                 "ownerReferences": [{"kind": "Job", "name": "j", "controller": true}]},
    "status": {"phase": "Running"},
    "optcacheWantsGpus": true,
    "optcacheHasSidecar": false})"));
}

TEST(Reduce, APodThatHasEndedWantsNoGpus) {
  for (const auto& [phase, wants] :
       {std::pair{"Pending", true}, {"Running", true}, {"Succeeded", false}, {"Failed", false}}) {
    Json pod = Json::parse(
        R"({"metadata": {"name": "p"},
            "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}})");
    pod["status"]["phase"] = phase;
    ReduceTrainingPod(pod);
    EXPECT_EQ(kube::BoolAt(pod, kWantsGpus), wants) << phase;
  }
}

TEST(IsGpu, KnowsThemByTheirNames) {
  for (const char* name : {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb",
                           "amd.com/gpu", "gpu.intel.com/xe", "volcano.sh/vgpu-number",
                           "google.com/tpu", "habana.ai/gaudi", "aws.amazon.com/neuron"})
    EXPECT_TRUE(IsGpu(name)) << name;
  for (const char* name : {"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "rdma/hca_a",
                           "example.com/migrations", "gpu", "mig-/x", ""})
    EXPECT_FALSE(IsGpu(name)) << name;
}

TEST(Reduce, WhatIsNoObjectDoesNoHarm) {
  for (const char* text :
       {"{}", R"({"metadata": {"labels": 3, "annotations": []}, "status": 1})"}) {
    Json node = Json::parse(text);
    ReduceNode(node);
    Json pod = Json::parse(text);
    ReduceTrainingPod(pod);
    EXPECT_FALSE(kube::BoolAt(pod, kWantsGpus));
  }
}

// --- Pods without their sidecar -----------------------------------------------------------------

Json TrainingPod() {
  return Json::parse(R"({"metadata": {"name": "p", "namespace": "vision", "uid": "u",
                                      "labels": {"optcache.io/inject": "true"}, "annotations": {}},
                         "status": {"phase": "Pending"}})");
}

TEST(IsUninjected, IsAPodThatAskedAndGotNothing) {
  EXPECT_TRUE(IsUninjected(TrainingPod()));
  for (const char* patch :
       {R"({"metadata": {"annotations": {"optcache.io/injected": "0.1"}}})",
        R"({"metadata": {"annotations": {"optcache.io/optional": "true"}}})",
        R"({"metadata": {"labels": {"optcache.io/inject": "false"}}})",
        R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})",
        R"({"optcacheHasSidecar": true})", R"({"status": {"phase": "Succeeded"}})"}) {
    Json pod = TrainingPod();
    pod.merge_patch(Json::parse(patch));
    EXPECT_FALSE(IsUninjected(pod)) << patch;
  }
}

// --- What sidecars say at their end --------------------------------------------------------

Json MeasuredPod(const char* list) {
  Json pod = TrainingPod();
  pod["metadata"]["annotations"]["optcache.io/results"] = "not-for-use";
  pod["status"][list] = Json::parse(R"([{"name": "train"}, {"name": "optcache-sidecar", "state":
      {"terminated": {"finishedAt": "2026-01-01T00:00:00Z",
                      "message": "{\"headspace\": {\"state\": \"done\", \"message\": \"So.\"}}\n"}}}])");
  return pod;
}

TEST(LastWordOf, IsTheSidecarsLastWord) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    Json pod = MeasuredPod(list);
    ReduceTrainingPod(pod);
    const Json& said = kube::Find(pod, kLastWord);
    EXPECT_EQ(kube::TextAt(said, "/about"), "headspace") << list;
    EXPECT_EQ(kube::TextAt(said, "/state"), "done") << list;
    EXPECT_EQ(kube::TextAt(said, "/message"), "So.") << list;
    EXPECT_EQ(kube::TextAt(said, "/at"), "2026-01-01T00:00:00Z") << list;
  }
}

TEST(LastWordOf, IsNothingWhereItWasNotMeasuredOrNothingWasSaid) {
  for (const char* patch :
       {R"({"metadata": {"annotations": {"optcache.io/results": null}}})",
        R"({"status": {"containerStatuses": []}})", R"({"status": {"containerStatuses": 3}})",
        R"({"status": {"containerStatuses": [{"name": "optcache-sidecar",
            "state": {"running": {}}}]}})",
        R"({"status": {"containerStatuses": [{"name": "optcache-sidecar",
            "state": {"terminated": {"message": "panic"}}}]}})",
        R"({"status": {"containerStatuses": [{"name": "optcache-sidecar",
            "state": {"terminated": {"message": "{\"headspace\": 7}"}}}]}})"}) {
    Json pod = MeasuredPod("containerStatuses");
    pod.merge_patch(Json::parse(patch));
    ReduceTrainingPod(pod);
    EXPECT_TRUE(kube::Find(pod, kLastWord).is_null()) << patch;
  }
}

TEST(LastWordOf, IsWhatWasSavedWhereThePodIsNotMarked) {
  Json pod = MeasuredPod("containerStatuses");
  pod["metadata"]["annotations"].erase("optcache.io/results");
  pod["status"]["containerStatuses"][1]["state"]["terminated"]["message"] =
      R"({"saved": {"message": "saved 9 requests."}})";
  ReduceTrainingPod(pod);
  const Json& said = kube::Find(pod, kLastWord);
  EXPECT_EQ(kube::TextAt(said, "/about"), "saved");
  EXPECT_EQ(kube::TextAt(said, "/message"), "saved 9 requests.");
  EXPECT_EQ(kube::TextAt(said, "/at"), "2026-01-01T00:00:00Z");
}

TEST(LastWordOf, IsNoLongerThanAnEventMayBeAndStaysText) {
  Json pod = MeasuredPod("containerStatuses");
  std::string message = "x";
  while (message.size() < 4000)
    message += "\xe2\x82\xac";
  pod["status"]["containerStatuses"][1]["state"]["terminated"]["message"] =
      Json({{"headspace", {{"message", message}}}}).dump();
  const std::string cut = kube::TextAt(LastWordOf(pod), "/message");
  EXPECT_LE(cut.size(), 700U);
  EXPECT_TRUE(message.starts_with(cut));
  EXPECT_TRUE(IsUtf8(cut));
}

TEST(Reduce, ATrainingPodMayBringItsOwnSidecar) {
  for (const char* list : {"containers", "initContainers"}) {
    Json pod = TrainingPod();
    pod["spec"][list] = Json::parse(R"([{"name": "train"}, {"name": "optcache-sidecar"}])");
    ReduceTrainingPod(pod);
    EXPECT_TRUE(kube::BoolAt(pod, kHasSidecar)) << list;
  }
}

TEST(LeavesAlone, NamespacesThatAllItsWebhooksKeepOut) {
  const auto webhook = [](const char* values) {
    Json rule = Json::parse(R"({"key": "kubernetes.io/metadata.name", "operator": "NotIn"})");
    rule["values"] = Json::parse(values);
    return Json{{"namespaceSelector", {{"matchExpressions", Json::array({rule})}}}};
  };
  Json configuration = {{"webhooks", {webhook(R"(["kube-system", "sys"])")}}};
  EXPECT_TRUE(LeavesAlone(configuration, "sys"));
  EXPECT_FALSE(LeavesAlone(configuration, "vision"));
  configuration["webhooks"].push_back(webhook(R"(["kube-system"])"));
  EXPECT_FALSE(LeavesAlone(configuration, "sys"));
  EXPECT_FALSE(LeavesAlone(Json::object(), "sys"));
}

TEST(OwnerOf, IsTheControllerOrThePodItself) {
  Json pod = TrainingPod();
  EXPECT_EQ(OwnerOf(pod).kind, "Pod");
  pod["metadata"]["ownerReferences"] = Json::parse(
      R"([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": true}])");
  const kube::ObjectReference owner = OwnerOf(pod);
  EXPECT_EQ(owner.kind, "Job");
  EXPECT_EQ(owner.name, "train");
  EXPECT_EQ(owner.ns, "vision");
}

// --- Conditions as metrics ----------------------------------------------------------------------

std::vector<std::string> ConditionsShown(const kube::ObjectCache& datasets) {
  std::vector<std::string> shown;
  VisitConditions(datasets,
                  [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
                    EXPECT_EQ(name, "optcache_dataset_condition");
                    EXPECT_EQ(value, 1);
                    std::string line;
                    for (const auto& [label, text] : labels)
                      line += label + "=" + text + " ";
                    shown.push_back(line);
                  });
  return shown;
}

TEST(VisitConditions, ShowsTheStatusThatEachHas) {
  kube::ObjectCache datasets;
  datasets.Put({"vision", "imagenet"}, Json::parse(R"({
    "metadata": {"name": "imagenet", "namespace": "vision"},
    "status": {"conditions": [{"type": "Ready", "status": "True"},
                              {"type": "Degraded", "status": "False"},
                              {"type": "SourceReachable", "status": "Unknown"}]}})"));
  datasets.Put({"vision", "new"},
               Json::parse(R"({"metadata": {"name": "new", "namespace": "vision"}})"));
  EXPECT_EQ(ConditionsShown(datasets),
            (std::vector<std::string>{
                "dataset=vision/imagenet condition=Ready status=true ",
                "dataset=vision/imagenet condition=Degraded status=false ",
                "dataset=vision/imagenet condition=SourceReachable status=unknown "}));
}

TEST(VisitConditions, HasABound) {
  kube::ObjectCache datasets;
  for (int i = 0; i < 1030; ++i) {
    const std::string name = "d" + std::to_string(i);
    datasets.Put({"vision", name},
                 {{"metadata", {{"name", name}, {"namespace", "vision"}}},
                  {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  EXPECT_EQ(ConditionsShown(datasets).size(), 1024U);
}

// --- CachePlans as metrics ----------------------------------------------------------------------

TEST(VisitPlanStatus, ShowsSinceWhenAnEpochsEndIsAwaited) {
  Json plan = Json::parse(R"({
    "spec": {"rollout": {"epochDeadlineSeconds": 7200}},
    "status": {"rollout": {"phase": "Observe", "epochTime": "2026-01-05T10:18:00Z"},
               "conditions": [{"type": "Progressing", "status": "True"}]}})");
  const auto shown = [&plan](const char* reason) {
    plan["status"]["conditions"][0]["reason"] = reason;
    std::vector<std::int64_t> values;
    VisitPlanStatus("vision/imagenet", plan,
                    [&](MetricKind, std::string_view name, const MetricLabels&, double value) {
                      if (name.starts_with("optcache_plan_epoch_"))
                        values.push_back(static_cast<std::int64_t>(value));
                    });
    return values;
  };
  EXPECT_EQ(shown("Observing"), (std::vector<std::int64_t>{1767608280, 7200}));
  EXPECT_EQ(shown("EpochAwaited").size(), 2U);
  for (const char* reason : {"Complete", "Paused", "Partitioned", "NodesChange"})
    EXPECT_EQ(shown(reason).size(), 0U) << reason;
}

// --- Warmups as metrics -------------------------------------------------------------------------

// "optcache_warmup_bytes{dataset=…,warmup=…} 5", those of states only where they are 1.
std::vector<std::string> WarmupsShown(const kube::ObjectCache& warmups) {
  std::vector<std::string> shown;
  VisitWarmups(warmups, [&](MetricKind kind, std::string_view name, const MetricLabels& labels,
                            double value) {
    EXPECT_EQ(kind, MetricKind::kGauge);
    if (name == "optcache_warmup_state" && value == 0) return;
    std::string line(name.substr(std::string_view("optcache_warmup_").size()));
    for (const auto& [label, text] : labels)
      line += " " + label + "=" + text;
    shown.push_back(line + " " + std::to_string(static_cast<int>(value)));
  });
  return shown;
}

Json WarmupOf(const char* status) {
  return Json{{"metadata", {{"name", "fill"}, {"namespace", "vision"}}},
              {"spec", {{"dataset", "imagenet"}}},
              {"status", Json::parse(status)}};
}

TEST(VisitWarmups, ShowsHowEachStandsAndHowFarItIs) {
  kube::ObjectCache warmups;
  const auto shown = [&](const char* status) {
    warmups.Put({"vision", "fill"}, WarmupOf(status));
    return WarmupsShown(warmups);
  };
  const std::string whose = " dataset=vision/imagenet warmup=vision/fill";
  EXPECT_EQ(shown(R"({"bytes": 5, "totalBytes": 9, "conditions": [
                      {"type": "Complete", "status": "False", "reason": "Warming"},
                      {"type": "Failed", "status": "False", "reason": "AsWanted"}]})"),
            (std::vector<std::string>{"state" + whose + " state=running 1", "bytes" + whose + " 5",
                                      "room_bytes" + whose + " 9"}));
  EXPECT_EQ(shown("{}")[0], "state" + whose + " state=waiting 1");
  EXPECT_EQ(shown(R"({"conditions": [{"type": "Complete", "status": "True",
                                      "reason": "Warmed"}]})")[0],
            "state" + whose + " state=complete 1");
  EXPECT_EQ(shown(R"({"conditions": [{"type": "Complete", "status": "False",
                                      "reason": "WarmupFailed"},
                                     {"type": "Failed", "status": "True",
                                      "reason": "WarmupFailed"}]})")[0],
            "state" + whose + " state=failed 1");
}

TEST(VisitWarmups, HasABound) {
  kube::ObjectCache warmups;
  for (std::size_t i = 0; i < kMaxWarmupsShown + 5; ++i) {
    const std::string name = "w" + std::to_string(i);
    warmups.Put({"vision", name}, {{"metadata", {{"name", name}, {"namespace", "vision"}}}});
  }
  EXPECT_EQ(WarmupsShown(warmups).size(), 3 * kMaxWarmupsShown);
}

// --- Datasets for the injector ------------------------------------------------------------------

class DatasetDirectoryTest : public kube::ApiFixture {
 protected:
  void Put(const std::string& name, const char* spec) {
    Json dataset = kube::MakeObject(api::kDatasets, {.ns = "vision", .name = name});
    dataset["spec"] = Json::parse(spec);
    server.store([&](kube::FakeApiStore& store) { store.Put(api::kDatasets, dataset); });
  }
  const webhook::DatasetFacts* Find(const std::string& name) {
    if (!directory.synced()) {
      datasets.Start();
      RunUntil([&] { return directory.synced(); });
    }
    return directory.Find("vision", name);
  }

  kube::Informer datasets{loop, SystemClock(), *client, {.resource = api::kDatasets}};
  kube::Informer nodes{loop, SystemClock(), *client, {.resource = kube::kNodes}};
  DatasetDirectory directory{datasets, nodes};
};

TEST_F(DatasetDirectoryTest, TellsItsKeysAndWhoMayUseIt) {
  Put("images", R"({"source": {"http": {"baseURL": "https://s", "secretRef": {"name": "keys"}}},
                    "cache": {"capacity": 1},
                    "access": [{"namespace": "speech"}]})");
  const webhook::DatasetFacts* const facts = Find("images");
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->url, "https://s");
  EXPECT_EQ(facts->secret, "keys");
  EXPECT_EQ(facts->access, std::vector<std::string>{"speech"});
  EXPECT_EQ(facts->url_by_identity, "");
}

TEST_F(DatasetDirectoryTest, ABucketHasAnAddress) {
  Put("images", R"({"source": {"s3": {"bucket": "b", "roleARN": "r", "secretRef": {"name": "k"}}},
                    "cache": {"capacity": 1}})");
  const webhook::DatasetFacts* const facts = Find("images");
  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->url, "s3://b/?region=us-east-1");
  EXPECT_EQ(facts->url_by_identity,
            std::string("s3://b/?region=us-east-1&role-arn=r&token-file=") + webhook::kStsToken);
  EXPECT_EQ(facts->secret, "k");
}

TEST_F(DatasetDirectoryTest, WhatItCannotUnderstandIsThereAllTheSame) {
  Put("tapes", R"({"source": {"tape": {}}, "cache": {"capacity": 1}})");
  ASSERT_NE(Find("tapes"), nullptr);
  EXPECT_FALSE(Find("tapes")->understood);
  EXPECT_EQ(Find("nothing"), nullptr);
}

// --- helm test ----------------------------------------------------------------------------------

Status Check(int http_status, const std::string& message) {
  return ReadCheck(std::unexpected(
      kube::ApiError{.status = {Code::kInvalidArgument, message}, .http_status = http_status}));
}

TEST(ReadCheck, APodWithASidecarIsWhatIsWanted) {
  for (const char* list : {"initContainers", "containers"}) {
    const Json pod = {{"spec", {{list, Json::array({{{"name", "optcache-sidecar"}}})}}}};
    EXPECT_TRUE(ReadCheck(pod).ok()) << list;
  }
}

TEST(ReadCheck, APodThatIsAdmittedWithoutOneWasNotLookedAt) {
  EXPECT_EQ(ReadCheck(BuildCheckPod("default")).code(), Code::kUnavailable);
}

TEST(ReadCheck, ARefusalIsNone) {
  EXPECT_EQ(Check(403, "admission webhook \"label.optcache.io\" denied the request").code(),
            Code::kInvalidArgument);
}

TEST(ReadCheck, OthersWordsAreHandedOn) {
  const Status refused = Check(403, "pods is forbidden: exceeded quota");
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.message(), "pods is forbidden: exceeded quota");
  EXPECT_EQ(Check(500, "failed calling webhook \"label.optcache.io\": timeout").code(),
            Code::kUnavailable);
}

TEST(CheckPod, IsInjectedInADryRunAlone) {
  class NoDatasets final : public webhook::DatasetView {
    bool synced() const override { return true; }
    const webhook::DatasetFacts* Find(std::string_view /*name_space*/,
                                      std::string_view /*name*/) const override {
      return nullptr;
    }
  };
  webhook::Review review{.name_space = "default",
                         .creates_pod = true,
                         .dry_run = true,
                         .pod = BuildCheckPod("default")};
  webhook::Injection injection = webhook::DecideReview(review, NoDatasets(), {});
  EXPECT_EQ(injection.outcome, webhook::Outcome::kInjected) << injection.message;
  EXPECT_EQ(injection.warnings, std::vector<std::string>());
  EXPECT_TRUE(ReadCheck(review.pod.patch(injection.patch)).ok());
  review.dry_run = false;
  injection = webhook::DecideReview(review, NoDatasets(), {});
  EXPECT_EQ(injection.reason, webhook::Reason::kUnknownDataset);
}

TEST(CheckPod, PassesPodSecurityRestricted) {
  const Json pod = BuildCheckPod("default");
  EXPECT_EQ(kube::Find(pod, "/spec/containers/0/securityContext/capabilities/drop"),
            Json::array({"ALL"}));
}

// --- Namespaces ---------------------------------------------------------------------------------

TEST(NamespacesOf, AreItsOwnAndThoseThatMayUseIt) {
  const Json dataset = Json::parse(
      R"({"metadata": {"namespace": "vision"}, "spec": {"access": [{"namespace": "speech"}, {}]}})");
  EXPECT_EQ(NamespacesOf(dataset), (std::vector<kube::ObjectKey>{{"", "vision"}, {"", "speech"}}));
}

}  // namespace
}  // namespace optcache::manager
