#include "cli/pod_story.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

constexpr const char* kInjectedPod = R"({
  "metadata": {"namespace": "vision", "name": "train-0", "labels": {"optcache.io/inject": "true"},
               "annotations": {"optcache.io/dataset": "imagenet, shared/words", "optcache.io/injected": "0.1.0"}},
  "spec": {"nodeName": "m2", "initContainers": [{"name": "optcache-sidecar"}]},
  "status": {"initContainerStatuses": [{"name": "optcache-sidecar", "restartCount": 1,
                                        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}})";
constexpr const char* kDatasets = R"({"items": [
  {"metadata": {"namespace": "vision", "name": "imagenet"},
   "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
  {"metadata": {"namespace": "shared", "name": "words"},
   "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Indexing",
                              "message": "the index Job runs"}]}}]})";
constexpr const char* kNodePods = R"({"items": [
  {"metadata": {"name": "optcache-node-x"}, "spec": {"nodeName": "m2"},
   "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]})";
constexpr const char* kInjectors =
    R"({"items": [{"webhooks": [{"clientConfig": {"caBundle": "LS0t"}}]}]})";
constexpr const char* kMetrics =
    "# TYPE optcache_client_samples_total counter\n"
    "optcache_client_samples_total{source=\"node\"} 280\n"
    "optcache_client_samples_total{source=\"peer\"} 22\n"
    "optcache_client_samples_total{source=\"store\"} 698\n"
    "optcache_client_samples_total_other{source=\"store\"} 5\n"
    "optcache_client_wait_seconds_total 1.25\n";

TEST(PodStory, TellsWhereAnInjectedPodsSamplesCameFrom) {
  const auto story = TellPodStory({.pod = kInjectedPod,
                                   .datasets = kDatasets,
                                   .node_pods = kNodePods,
                                   .injectors = kInjectors,
                                   .metrics = kMetrics});
  ASSERT_TRUE(story) << story.error().message();
  EXPECT_EQ(FormatPodStory(*story),
            "Pod vision/train-0\n"
            "  Injected  yes: by injector 0.1.0\n"
            "  Dataset   vision/imagenet, Ready\n"
            "  Dataset   shared/words, not Ready (Indexing): the index Job runs\n"
            "  Machine   m2: optcache-node-x is ready there\n"
            "  Sidecar   running, 1 restarts\n"
            "  Reads     30.2 % from the cache (280 from this machine's node, 22 from others), 698 "
            "from the store\n"
            "  Waited    1.2 s\n"
            "\n"
            "Next:\n"
            "  kubectl describe dataset.optcache.io -n shared words\n");
}

std::string PodWith(const std::string& labels, const std::string& annotations) {
  return R"({"metadata": {"namespace": "vision", "name": "p", "labels": {)" + labels +
         R"(}, "annotations": {)" + annotations + R"(}}, "spec": {"containers": []}})";
}

TEST(PodStory, SaysWhyAPodWasNotInjected) {
  constexpr const char* kLabel = R"("optcache.io/inject": "true")";
  constexpr const char* kDataset = R"("optcache.io/dataset": "imagenet")";
  constexpr const char* kNoBundle = R"({"items": [{"webhooks": [{"clientConfig": {}}]}]})";
  const struct {
    std::string pod;
    std::string injectors;
    std::string datasets;
    std::string why;
  } cases[] = {
      {PodWith("", ""), kInjectors, kDatasets,
       R"(it has no label optcache.io/inject: "true" and no annotation optcache.io/dataset)"},
      {PodWith(R"("optcache.io/inject": "false")", kDataset), kInjectors, kDatasets,
       R"(its label optcache.io/inject is "false")"},
      {PodWith(kLabel, ""), kInjectors, kDatasets, "it has no annotation optcache.io/dataset"},
      {PodWith(kLabel, kDataset), "", kDatasets, "no injector of optcache is in this cluster"},
      {PodWith(kLabel, kDataset), kInjectors, "",
       "Dataset vision/imagenet does not exist, and the pod says that it is optional"},
      {PodWith(kLabel, kDataset), kNoBundle, kDatasets,
       "the injector has no certificate yet: the operator has not written it"},
      {PodWith(kLabel, kDataset), kInjectors, kDatasets,
       "the injector did not answer when it was created, or came later; pods are injected only "
       "when they are created"},
  };
  for (const auto& [pod, injectors, datasets, why] : cases) {
    const auto story = TellPodStory({.pod = pod, .datasets = datasets, .injectors = injectors});
    ASSERT_TRUE(story) << story.error().message();
    EXPECT_FALSE(story->injected);
    EXPECT_EQ(story->why, why);
  }
}

TEST(PodStory, SaysThatAMachineHasNoNode) {
  const auto story = TellPodStory({.pod = kInjectedPod, .datasets = kDatasets});
  ASSERT_TRUE(story) << story.error().message();
  EXPECT_EQ(story->node, "no optcache node is there: the sidecar reads from the store");
  EXPECT_EQ(story->advice.back(), "kubectl logs -n vision train-0 -c optcache-sidecar");
}

TEST(PodStory, RefusesWhatIsNoPod) {
  for (const char* text : {"", "[]", "{}", "{\"metadata\": 3}"}) {
    const auto story = TellPodStory({.pod = text});
    ASSERT_FALSE(story) << text;
    EXPECT_EQ(story.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace optcache::cli
