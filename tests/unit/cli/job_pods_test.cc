#include "cli/explain/job_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(JobPods, AJobsPodHasItsNameByLabelControllerAndStream) {
  const Json pod = Json::parse(R"({
    "metadata": {"labels": {"job-name": "train"},
                 "ownerReferences": [{"controller": true, "kind": "Job", "name": "train", "uid": "1a"}]},
    "spec": {"initContainers": [{"name": "optcache-sidecar",
             "env": [{"name": "OPTCACHE_OWNER", "value": "resnet.1a2b3c4d"}]}]}})");
  EXPECT_THAT(JobNamesOf(pod), ElementsAre("resnet", "train"));
  EXPECT_EQ(StreamOwnerOf(pod), "resnet.1a2b3c4d");
}

TEST(JobPods, ADeploymentsPodHasTheNamesOfBothControllers) {
  const Json pod = Json::parse(R"({"metadata": {"labels": {"pod-template-hash": "5f0c9"},
      "ownerReferences": [{"controller": true, "kind": "ReplicaSet", "name": "web-5f0c9", "uid": "1"}]}})");
  EXPECT_THAT(JobNamesOf(pod), ElementsAre("web", "web-5f0c9"));
  EXPECT_EQ(StreamOwnerOf(pod), "");
}

TEST(JobPods, AJobSetsPodHasItsName) {
  const Json pod = Json::parse(R"({"metadata": {"labels": {"jobset.sigs.k8s.io/jobset-name": "big"},
      "ownerReferences": [{"controller": true, "kind": "Job", "name": "big-workers-0", "uid": "1"}]}})");
  EXPECT_THAT(JobNamesOf(pod), ElementsAre("big", "big-workers-0"));
}

TEST(JobPods, ABarePodIsOfNoJob) {
  EXPECT_THAT(JobNamesOf(Json::parse(R"({"metadata": {"name": "p"}})")), IsEmpty());
  EXPECT_THAT(JobNamesOf(Json()), IsEmpty());
}

TEST(JobName, IsOfAJobAKindAndAJobOrAStream) {
  EXPECT_EQ(ParseJobName("train")->name, "train");
  EXPECT_EQ(ParseJobName("pytorchjob/train")->name, "train");
  const auto stream = ParseJobName("vision/train.1a2b3c4d/imagenet/loader");
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->name_space, "vision");
  EXPECT_EQ(stream->name, "train");
  EXPECT_EQ(stream->stream, "vision/train.1a2b3c4d/imagenet/loader");
}

TEST(JobName, IsNoOptionAndNoPath) {
  for (const char* word :
       {"", "--all", "a/b/c", "a/", "../train", "A", "/a/b/c", "a//b/c", "x&limit=1"}) {
    const auto job = ParseJobName(word);
    ASSERT_FALSE(job) << word;
    EXPECT_EQ(job.error().code(), Code::kInvalidArgument) << word;
  }
}

}  // namespace
}  // namespace optcache::cli
