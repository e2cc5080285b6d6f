#include "kube/object.h"

#include <gtest/gtest.h>

namespace optcache::kube {
namespace {

Json Pod() {
  return Json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "train-0", "namespace": "vision", "uid": "u-1", "resourceVersion": "42",
      "generation": 3,
      "labels": {"app.kubernetes.io/name": "train", "rank": 7},
      "annotations": {"optcache.io/dataset": "imagenet"},
      "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-2"},
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-3",
         "controller": true}]},
    "spec": {"containers": [{"name": "a"}, {"name": "b", "ports": []}], "hostNetwork": true},
    "status": {"count": 18446744073709551615, "less": -1}})");
}

TEST(Object, FindsWhatLiesAtAPointer) {
  const Json pod = Pod();
  EXPECT_EQ(Find(pod, "/spec/containers/1/name"), "b");
  EXPECT_EQ(Find(pod, "/metadata/labels/app.kubernetes.io~1name"), "train");
  EXPECT_EQ(&Find(pod, ""), &pod);
}

TEST(Object, WhatIsMissingIsNull) {
  const Json pod = Pod();
  for (const char* pointer : {"/spec/nothing/name", "/spec/containers/2", "/spec/containers/x",
                              "/spec/containers/-1", "/spec/containers/1x", "/kind/0", "spec"}) {
    EXPECT_TRUE(Find(pod, pointer).is_null()) << pointer;
  }
}

TEST(Object, APointersStepIsEscaped) {
  const Json object = {{"a/b~c", {{"~1", 5}}}};
  EXPECT_EQ(PointerStep("a/b~c"), "a~1b~0c");
  EXPECT_EQ(Find(object, "/" + PointerStep("a/b~c") + "/" + PointerStep("~1")), 5);
}

TEST(Object, ReadsTextsNumbersAndLists) {
  const Json pod = Pod();
  EXPECT_EQ(TextAt(pod, "/kind"), "Pod");
  EXPECT_EQ(TextAt(pod, "/metadata/generation"), "3");
  EXPECT_EQ(TextAt(pod, "/spec/hostNetwork"), "true");
  EXPECT_EQ(TextAt(pod, "/spec"), "");
  EXPECT_TRUE(BoolAt(pod, "/spec/hostNetwork"));
  EXPECT_FALSE(BoolAt(pod, "/kind"));
  EXPECT_EQ(Items(pod, "/spec/containers").size(), 2U);
  EXPECT_TRUE(Items(pod, "/spec").empty());
  EXPECT_EQ(NumberAt(pod, "/metadata/generation"), 3);
  EXPECT_EQ(NumberAt(pod, "/status/less"), -1);
  EXPECT_EQ(NumberAt(pod, "/status/count"), std::nullopt);  // More than an int64 holds.
  EXPECT_EQ(NumberAt(pod, "/kind"), std::nullopt);
}

TEST(Object, ACountIsNeverBelowZero) {
  const Json pod = Pod();
  EXPECT_EQ(CountAt(pod, "/metadata/generation"), 3U);
  for (const char* pointer : {"/status/less", "/status/count", "/kind", "/status/none"})
    EXPECT_EQ(CountAt(pod, pointer), 0U) << pointer;
}

TEST(Object, ReadsMetadata) {
  Json pod = Pod();
  EXPECT_EQ(KeyOf(pod), (ObjectKey{.ns = "vision", .name = "train-0"}));
  EXPECT_EQ(KeyOf(pod).ToString(), "vision/train-0");
  EXPECT_EQ((ObjectKey{.ns = "", .name = "node1"}.ToString()), "node1");
  EXPECT_EQ(UidOf(pod), "u-1");
  EXPECT_EQ(ResourceVersionOf(pod), "42");
  EXPECT_EQ(GenerationOf(pod), 3);
  EXPECT_EQ(LabelOf(pod, "app.kubernetes.io/name"), "train");
  EXPECT_EQ(LabelOf(pod, "rank"), std::nullopt);  // No text: not a label.
  EXPECT_EQ(AnnotationOf(pod, "optcache.io/dataset"), "imagenet");
  EXPECT_EQ(AnnotationOf(pod, "none"), std::nullopt);
  EXPECT_FALSE(IsBeingDeleted(pod));
  pod["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z";
  EXPECT_TRUE(IsBeingDeleted(pod));
}

TEST(Object, MetadataOfWhatIsNoObjectIsEmpty) {
  for (const Json& odd : {Json(), Json("text"), Json::array(), Json{{"metadata", "text"}}}) {
    EXPECT_EQ(KeyOf(odd), ObjectKey());
    EXPECT_EQ(GenerationOf(odd), 0);
    EXPECT_EQ(LabelOf(odd, "a"), std::nullopt);
    EXPECT_FALSE(ControllerOf(odd).has_value());
  }
}

TEST(Object, TheControllerIsTheOwnerThatSaysSo) {
  const auto owner = ControllerOf(Pod());
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->api_version, "batch/v1");
  EXPECT_EQ(owner->kind, "Job");
  EXPECT_EQ(owner->name, "train");
  EXPECT_EQ(owner->uid, "u-3");
}

TEST(Object, AnOwnerReferenceNamesTheControllerByUid) {
  EXPECT_EQ(OwnerReference(kPods, Pod()), Json({{"apiVersion", "v1"},
                                                {"kind", "Pod"},
                                                {"name", "train-0"},
                                                {"uid", "u-1"},
                                                {"controller", true},
                                                {"blockOwnerDeletion", true}}));
}

TEST(Object, IsMadeWithANamespaceOnlyWhereThereIsOne) {
  EXPECT_EQ(MakeObject(kJobs, {.ns = "a", .name = "b"}),
            Json({{"apiVersion", "batch/v1"},
                  {"kind", "Job"},
                  {"metadata", {{"name", "b"}, {"namespace", "a"}}}}));
  EXPECT_EQ(MakeObject(kNodes, {.ns = "a", .name = "b"})["metadata"], Json({{"name", "b"}}));
}

TEST(Object, AListHasItems) {
  EXPECT_TRUE(ParseList("", "pods")->at("items").empty());
  EXPECT_EQ(ParseList(R"({"items": [1]})", "pods")->at("items").size(), 1U);
  for (const char* text : {"{", "[]", R"({"items": {}})"}) {
    const auto list = ParseList(text, "pods");
    ASSERT_FALSE(list.has_value()) << text;
    EXPECT_EQ(list.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(list.error().message(), "pods is not a list of objects");
  }
}

}  // namespace
}  // namespace optcache::kube
