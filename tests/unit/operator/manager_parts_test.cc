// The smaller parts of operator/manager.

#include <gtest/gtest.h>

#include "operator/manager/check_injection.h"
#include "operator/manager/injection_watch.h"
#include "operator/manager/node_tokens.h"
#include "operator/manager/reconcilers.h"
#include "operator/manager/watches.h"

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
    "optcacheWantsGpus": true})"));
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
  for (const char* patch : {R"({"metadata": {"annotations": {"optcache.io/injected": "0.1"}}})",
                            R"({"metadata": {"annotations": {"optcache.io/optional": "true"}}})",
                            R"({"metadata": {"labels": {"optcache.io/inject": "false"}}})",
                            R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})",
                            R"({"status": {"phase": "Succeeded"}})"}) {
    Json pod = TrainingPod();
    pod.merge_patch(Json::parse(patch));
    EXPECT_FALSE(IsUninjected(pod)) << patch;
  }
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

// --- helm test ----------------------------------------------------------------------------------

Status Check(int http_status, const std::string& message) {
  return ReadCheck(std::unexpected(
      kube::ApiError{.status = {Code::kInvalidArgument, message}, .http_status = http_status}));
}

TEST(ReadCheck, TheInjectorsRefusalIsWhatIsWanted) {
  EXPECT_TRUE(Check(400,
                    "admission webhook \"label.optcache.io\" denied the request: Dataset "
                    "vision/optcache-check-injection does not exist")
                  .ok());
}

TEST(ReadCheck, APodThatIsAdmittedWasNotLookedAt) {
  EXPECT_EQ(ReadCheck(Json::object()).code(), Code::kUnavailable);
}

TEST(ReadCheck, OthersWordsAreHandedOn) {
  const Status refused = Check(403, "pods is forbidden: exceeded quota");
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.message(), "pods is forbidden: exceeded quota");
  EXPECT_EQ(Check(500, "failed calling webhook \"label.optcache.io\": timeout").code(),
            Code::kUnavailable);
}

TEST(CheckPod, PassesPodSecurityRestrictedAndNamesADatasetThatCannotExist) {
  const Json pod = BuildCheckPod("default");
  EXPECT_EQ(kube::LabelOf(pod, "optcache.io/inject"), "true");
  EXPECT_EQ(kube::AnnotationOf(pod, "optcache.io/dataset"), "optcache-check-injection");
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
