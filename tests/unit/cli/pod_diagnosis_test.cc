#include "cli/explain/pod_diagnosis.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal/yaml_text.h"
#include "support/golden_file.h"

namespace optcache::cli {
namespace {

constexpr const char* kInjectedPod = R"({
  "metadata": {"namespace": "vision", "name": "train-0", "labels": {"optcache.io/inject": "true"},
               "annotations": {"optcache.io/dataset": "imagenet, shared/words", "optcache.io/injected": "0.1.0"}},
  "spec": {"nodeName": "m2", "initContainers": [{"name": "optcache-sidecar"}]},
  "status": {"initContainerStatuses": [{"name": "optcache-sidecar", "restartCount": 1,
                                        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}})";
constexpr const char* kReady =
    R"({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})";
constexpr const char* kIndexing =
    R"({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Indexing",
                                   "message": "the index Job runs"}]}})";
constexpr const char* kNodePods = R"({"items": [
  {"metadata": {"name": "optcache-node-x"}, "spec": {"nodeName": "m2"},
   "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]})";
constexpr const char* kInjectors = R"({"items": [{"webhooks": [
  {"name": "label.optcache.io", "clientConfig": {"caBundle": "LS0t"},
   "namespaceSelector": {"matchExpressions": [
       {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]}}]}]})";
constexpr const char* kMetrics =
    "# TYPE optcache_client_samples_total counter\n"
    "optcache_client_samples_total{source=\"local\"} 280\n"
    "optcache_client_samples_total{source=\"peer\"} 22\n"
    "optcache_client_samples_total{source=\"store\"} 698\n"
    "optcache_client_samples_total_other{source=\"store\"} 5\n"
    "optcache_client_wait_seconds_total 1.25\n"
    "optcache_computed_reads_total{result=\"hit\"} 300\n"
    "optcache_computed_reads_total{result=\"miss\"} 100\n"
    "optcache_computed_capacity_bytes 4194304\n"
    "optcache_computed_bytes 1048576\n";

TEST(PodDiagnosis, TellsWhereAnInjectedPodsSamplesCameFrom) {
  const auto diagnosis = DiagnosePod({.pod = kInjectedPod,
                                      .datasets = {{.name = "vision/imagenet", .json = kReady},
                                                   {.name = "shared/words", .json = kIndexing}},
                                      .node_pods = kNodePods,
                                      .injectors = kInjectors,
                                      .metrics = kMetrics});
  ASSERT_TRUE(diagnosis) << diagnosis.error().message();
  ExpectGolden(FormatPodDiagnosis(*diagnosis), "cli/pod-diagnosis.txt");
  ExpectGolden(ToJson(*diagnosis), "cli/pod-diagnosis.json");
  ExpectGolden(ToYaml(ToJson(*diagnosis)), "cli/pod-diagnosis.yaml");
}

TEST(PodDiagnosis, TellsOfComputedSamplesOnlyWhereTheSidecarHasMemoryForThem) {
  const std::string none = "optcache_client_wait_seconds_total 1\n";
  const std::string idle = none + "optcache_computed_capacity_bytes 1048576\n";
  const auto told = [](const std::string& metrics) {
    return FormatPodDiagnosis(*DiagnosePod({.pod = kInjectedPod, .metrics = metrics}));
  };
  EXPECT_THAT(told(none), testing::Not(testing::HasSubstr("Computed")));
  EXPECT_THAT(told(idle),
              testing::HasSubstr("Computed  none asked for yet; 0 B of 1.00 MiB in use"));
}

std::string PodWith(const std::string& labels, const std::string& annotations,
                    const std::string& ns = "vision") {
  return R"({"metadata": {"namespace": ")" + ns + R"(", "name": "p", "labels": {)" + labels +
         R"(}, "annotations": {)" + annotations + R"(}}, "spec": {"containers": []}})";
}

// The pod names the Dataset vision/imagenet, if any, which is `dataset`.
std::string WhyNot(const std::string& pod, std::optional<std::string> injectors,
                   std::optional<std::string> dataset) {
  PodAnswers answers{.pod = pod, .injectors = std::move(injectors)};
  for (const kube::ObjectKey& key : DatasetsOfPod(pod))
    answers.datasets.push_back({.name = key.ToString(), .json = dataset});
  const auto diagnosis = DiagnosePod(answers);
  EXPECT_TRUE(diagnosis) << diagnosis.error().message();
  EXPECT_FALSE(diagnosis->injected);
  return diagnosis->why;
}

constexpr const char* kLabel = R"("optcache.io/inject": "true")";
constexpr const char* kDataset = R"("optcache.io/dataset": "imagenet")";
constexpr const char* kOptional =
    R"("optcache.io/dataset": "imagenet", "optcache.io/optional": "true")";
constexpr const char* kNotAnswered =
    "the injector did not answer when it was created, or came later; pods are injected only when "
    "they are created";

TEST(PodDiagnosis, SaysWhatAPodLacks) {
  EXPECT_EQ(WhyNot(PodWith("", ""), kInjectors, kReady),
            R"(it has no label optcache.io/inject: "true" and no annotation optcache.io/dataset)");
  EXPECT_EQ(WhyNot(PodWith(R"("optcache.io/inject": "false")", kDataset), kInjectors, kReady),
            R"(its label optcache.io/inject is "false")");
  EXPECT_EQ(WhyNot(PodWith(kLabel, ""), kInjectors, kReady),
            "it has no annotation optcache.io/dataset");
  EXPECT_EQ(WhyNot(PodWith("", kDataset), kInjectors, kReady),
            R"(it has no label optcache.io/inject: "true", and here the annotation is not enough)");
}

TEST(PodDiagnosis, SaysWhatTheInjectorLacks) {
  constexpr const char* kNoBundle = R"({"items": [{"webhooks": [{"clientConfig": {}}]}]})";
  EXPECT_EQ(WhyNot(PodWith(kLabel, kDataset), R"({"items": []})", kReady),
            "no injector of optcache is in this cluster");
  EXPECT_EQ(WhyNot(PodWith(kLabel, kDataset), kNoBundle, kReady),
            "the injector has no certificate yet: the operator has not written it");
  EXPECT_EQ(WhyNot(PodWith(kLabel, kDataset, "kube-system"), kInjectors, kReady),
            "the injector leaves pods of namespace kube-system alone");
  EXPECT_EQ(WhyNot(PodWith(kLabel, kDataset), kInjectors, kReady), kNotAnswered);
}

TEST(PodDiagnosis, SaysWhatAnOptionalPodWasSpared) {
  EXPECT_EQ(WhyNot(PodWith(kLabel, kOptional), kInjectors, ""),
            "Dataset vision/imagenet does not exist, and the pod says that it is optional");
  EXPECT_EQ(WhyNot(PodWith(kLabel, kOptional), kInjectors, kReady),
            "the injector did not answer when it was created, or refused it, which "
            "optcache.io/optional lets pass, or came later; pods are injected only when they are "
            "created");
  EXPECT_EQ(WhyNot(PodWith(kLabel, kDataset), kInjectors, ""), kNotAnswered)
      << "a missing Dataset refuses pods that are not optional";
}

TEST(PodDiagnosis, ConcludesNothingFromWhatItMayNotSee) {
  EXPECT_EQ(WhyNot(PodWith(kLabel, kOptional), std::nullopt, std::nullopt)
                .find("the injector did not answer"),
            0U);
  const auto diagnosis =
      DiagnosePod({.pod = kInjectedPod, .datasets = {{.name = "vision/imagenet"}}});
  ASSERT_TRUE(diagnosis) << diagnosis.error().message();
  EXPECT_EQ(diagnosis->node, "whether an optcache node is there cannot be seen with your rights");
  EXPECT_EQ(diagnosis->datasets.at(0).verdict, "cannot be seen with your rights");
  EXPECT_EQ(diagnosis->advice,
            std::vector<std::string>{"kubectl logs -n vision train-0 -c optcache-sidecar"});
}

TEST(PodDiagnosis, SaysThatAMachineHasNoNode) {
  const auto diagnosis = DiagnosePod({.pod = kInjectedPod, .node_pods = R"({"items": []})"});
  ASSERT_TRUE(diagnosis) << diagnosis.error().message();
  EXPECT_EQ(diagnosis->node, "no optcache node is there: the sidecar reads from the store");
}

TEST(PodDiagnosis, SaysWhyAPodHasNoMachine) {
  const auto diagnosis = DiagnosePod({.pod = R"({
    "metadata": {"namespace": "vision", "name": "train-0"},
    "spec": {"initContainers": [{"name": "optcache-sidecar"}]},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False",
                               "message": "0/3 nodes are available: 3 Insufficient cpu."}]}})"});
  ASSERT_TRUE(diagnosis) << diagnosis.error().message();
  EXPECT_EQ(diagnosis->node,
            "the pod has no machine yet: 0/3 nodes are available: 3 Insufficient cpu.");
}

TEST(PodDiagnosis, SaysThatNobodyHasLookedAtADataset) {
  const auto diagnosis =
      DiagnosePod({.pod = kInjectedPod, .datasets = {{.name = "vision/imagenet", .json = "{}"}}});
  ASSERT_TRUE(diagnosis) << diagnosis.error().message();
  EXPECT_EQ(diagnosis->datasets.at(0).verdict, "not Ready: no operator has looked at it");
}

TEST(DatasetsOfPod, AreOfItsNamespaceUnlessTheyNameAnother) {
  const std::vector<kube::ObjectKey> keys = {{.ns = "vision", .name = "imagenet"},
                                             {.ns = "shared", .name = "words"}};
  EXPECT_EQ(DatasetsOfPod(kInjectedPod), keys);
  EXPECT_TRUE(DatasetsOfPod("no pod").empty());
  std::string many = "d";
  for (int i = 0; i < 100; ++i)
    many += ",d";
  EXPECT_EQ(DatasetsOfPod(PodWith("", R"("optcache.io/dataset": ")" + many + "\"")).size(), 16U);
}

TEST(PodDiagnosis, RefusesWhatIsNoPod) {
  for (const char* text : {"", "[]", "{}", "{\"metadata\": 3}"}) {
    const auto diagnosis = DiagnosePod({.pod = text});
    ASSERT_FALSE(diagnosis) << text;
    EXPECT_EQ(diagnosis.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace optcache::cli
