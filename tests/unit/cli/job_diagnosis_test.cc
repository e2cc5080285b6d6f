#include "cli/explain/job_diagnosis.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden_file.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

constexpr const char* kReady =
    R"({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Serving"}]}})";
constexpr const char* kForbidden =
    R"({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "SourceForbidden",
                                   "message": "403 of the store"}]}})";
constexpr const char* kNodePods = R"({"items": [
  {"metadata": {"name": "optcache-node-x"}, "spec": {"nodeName": "m1"},
   "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]})";
constexpr const char* kInjectors = R"({"items": [{"webhooks": [
  {"name": "label.optcache.io", "clientConfig": {"caBundle": "LS0t"}}]}]})";
constexpr const char* kPage =
    "optcache_client_samples_total{source=\"local\"} 600\n"
    "optcache_client_samples_total{source=\"peer\"} 100\n"
    "optcache_client_samples_total{source=\"store\"} 300\n"
    "optcache_client_wait_seconds_total 12.5\n"
    "optcache_loaders_attached 4\n";

nlohmann::json InjectedPod(const std::string& name, const char* changes = "{}") {
  nlohmann::json pod = nlohmann::json::parse(R"({
    "metadata": {"namespace": "vision", "labels": {"optcache.io/inject": "true", "job-name": "resnet"},
                 "annotations": {"optcache.io/dataset": "imagenet", "optcache.io/injected": "0.1.0"}},
    "spec": {"nodeName": "m1", "initContainers": [{"name": "optcache-sidecar",
             "env": [{"name": "OPTCACHE_OWNER", "value": "resnet"}]}]},
    "status": {"phase": "Running",
               "initContainerStatuses": [{"name": "optcache-sidecar", "restartCount": 0,
                                          "state": {"running": {}}}]}})");
  pod["metadata"]["name"] = name;
  pod.merge_patch(nlohmann::json::parse(changes));
  return pod;
}

PodAnswers AnswersAbout(const nlohmann::json& pod, const char* dataset = kReady) {
  const bool has_page =
      pod["status"]["phase"] == "Running" && pod["spec"].contains("initContainers");
  return {.pod = pod.dump(),
          .datasets = {{.name = "vision/imagenet", .json = dataset}},
          .node_pods = kNodePods,
          .injectors = kInjectors,
          .metrics = has_page ? std::optional<std::string>(kPage) : std::nullopt};
}

std::string PlansWith(const char* changes = "{}") {
  nlohmann::json plan = CompletePlan();
  plan.merge_patch(nlohmann::json::parse(changes));
  nlohmann::json list;
  list["items"].push_back(plan);
  return list.dump();
}

JobAnswers HealthyJob() {
  return {.job = {.name_space = "vision", .name = "resnet", .stream = ""},
          .batch_job = R"({"metadata": {"namespace": "vision", "name": "resnet"},
                           "spec": {"parallelism": 2, "completions": 2}, "status": {"active": 2}})",
          .pods = {AnswersAbout(InjectedPod("resnet-0")), AnswersAbout(InjectedPod("resnet-1"))},
          .plans = {PlansWith()},
          .events = R"({"items": []})"};
}

Explanation Told(const JobAnswers& answers) {
  auto explanation = ExplainJob(answers);
  EXPECT_TRUE(explanation) << explanation.error().message();
  return *explanation;
}

std::string Titled(const std::string& title, const JobAnswers& answers) {
  return "# " + title + "\n" + ExplanationAsText(Told(answers)) + "\n";
}

JobAnswers WithPods(std::vector<PodAnswers> pods) {
  JobAnswers answers = HealthyJob();
  answers.pods = std::move(pods);
  return answers;
}

constexpr const char* kNoSidecar = R"({"metadata": {"labels": {"optcache.io/inject": null}},
    "spec": {"initContainers": null}, "status": {"initContainerStatuses": null}})";
constexpr const char* kUnscheduled = R"({"spec": {"nodeName": null},
    "status": {"phase": "Pending", "initContainerStatuses": null, "conditions": [
      {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
       "message": "0/3 nodes are available: 3 Insufficient cpu."}]}})";
constexpr const char* kKilled = R"({"status": {"initContainerStatuses": [
    {"name": "optcache-sidecar", "restartCount": 3,
     "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}})";

TEST(JobDiagnosis, TellsOfPodsRanksAndSamples) {
  std::string text;
  text += Titled("healthy", HealthyJob());
  text += Titled("pods without a sidecar",
                 WithPods({AnswersAbout(InjectedPod("resnet-0", kNoSidecar)),
                           AnswersAbout(InjectedPod("resnet-1", kNoSidecar))}));
  text += Titled("a pod waits for a machine, another is missing",
                 WithPods({AnswersAbout(InjectedPod("resnet-0", kUnscheduled))}));
  text +=
      Titled("a sidecar was killed, and another has no node",
             WithPods({AnswersAbout(InjectedPod("resnet-0", kKilled)),
                       AnswersAbout(InjectedPod("resnet-1", R"({"spec": {"nodeName": "m9"}})"))}));
  text += Titled("its Dataset is not Ready",
                 WithPods({AnswersAbout(InjectedPod("resnet-0"), kForbidden),
                           AnswersAbout(InjectedPod("resnet-1"), kForbidden)}));
  JobAnswers answers = HealthyJob();
  answers.plans = {PlansWith(R"({"status": {"jobs": []}})")};
  text += Titled("no rank is attached", answers);
  answers = HealthyJob();
  answers.batch_job = R"({"spec": {"parallelism": 2, "suspend": true}})";
  answers.pods = {};
  answers.plans = {PlansWith(R"({"status": {"jobs": []}})")};
  text += Titled("suspended", answers);
  ExpectGolden(text, "cli/explain-job.txt");
  ExpectGolden(ExplanationAsJson(Told(HealthyJob())), "cli/explain-job.json");
}

std::string FoundAbout(const JobAnswers& answers, std::string_view about) {
  for (const Finding& finding : Told(answers).findings) {
    if (finding.about == about)
      return std::to_string(static_cast<int>(finding.severity)) + " " + finding.what;
  }
  return "nothing";
}

TEST(JobDiagnosis, SumsTheReadsOfItsPods) {
  EXPECT_EQ(FoundAbout(HealthyJob(), "samples"),
            "0 70.0 % came from the cache (1200 from the machine's own node, 200 from other "
            "nodes), 600 from the store; training processes waited 25.0 s");
}

TEST(JobDiagnosis, TellsWhatLimitsIt) {
  JobAnswers answers = HealthyJob();
  EXPECT_EQ(FoundAbout(answers, "limit"), "nothing") << "no page was looked at";
  answers.pages = {{.before = ParseMetrics(kPage), .after = ParseMetrics(kPage), .seconds = 2}};
  EXPECT_EQ(FoundAbout(answers, "limit"),
            "0 in 2.0 s, no rank read or waited: training does something else, for example a "
            "checkpoint or the end of an epoch");
}

TEST(JobDiagnosis, ItsStreamsAreThoseOfItsNameOrOfItsPodsOwner) {
  const auto stream_of = [](const char* job, const char* owner) {
    JobAnswers answers = HealthyJob();
    answers.job.name = job;
    nlohmann::json pod = InjectedPod("p");
    pod["spec"]["initContainers"][0]["env"][0]["value"] = owner;
    answers.pods = {AnswersAbout(pod)};
    return FoundAbout(answers, "stream vision/resnet/imagenet/train") != "nothing";
  };
  EXPECT_TRUE(stream_of("resnet", "other"));
  EXPECT_TRUE(stream_of("deployment", "resnet"));
  EXPECT_FALSE(stream_of("deployment", "other"));
  JobAnswers one = HealthyJob();
  one.job.stream = "vision/resnet/imagenet/val";
  EXPECT_EQ(FoundAbout(one, "stream vision/resnet/imagenet/train"), "nothing");
}

TEST(JobDiagnosis, AJobThatHasFailedIsAFault) {
  JobAnswers answers = HealthyJob();
  answers.batch_job = R"({"status": {"conditions": [{"type": "Failed", "status": "True",
      "reason": "BackoffLimitExceeded", "message": "too many"}]}, "spec": {"parallelism": 9}})";
  EXPECT_EQ(FoundAbout(answers, "job"), "2 it failed (BackoffLimitExceeded): too many");
  EXPECT_EQ(FoundAbout(answers, "pods"), "0 2 in all: 2 Running") << "none is missing any more";
}

// Of a Job with one pod that runs and one that is over.
std::string PodsFoundIn(const char* job) {
  JobAnswers answers = HealthyJob();
  answers.pods = {AnswersAbout(InjectedPod("resnet-0")),
                  AnswersAbout(InjectedPod("resnet-1", R"({"status": {"phase": "Succeeded"}})"))};
  answers.batch_job = job;
  return FoundAbout(answers, "pods");
}

TEST(JobDiagnosis, PodsAreMissedAsTheJobControllerCountsThem) {
  constexpr const char* kNoneIsMissing = "0 2 in all: 1 Running, 1 Succeeded";
  EXPECT_EQ(PodsFoundIn(R"({"spec": {"parallelism": 4}, "status": {"succeeded": 1}})"),
            kNoneIsMissing)
      << "after a success, a Job without completions gets no more pods";
  EXPECT_EQ(PodsFoundIn(R"({"spec": {"parallelism": 4, "completions": 4},
                            "status": {"succeeded": 1}})"),
            "2 2 of 3 are missing");
  EXPECT_EQ(PodsFoundIn(R"({"spec": {"parallelism": 5, "completions": 5},
                            "status": {"succeeded": 1, "failedIndexes": "1,3-4"}})"),
            kNoneIsMissing)
      << "failed indexes are not tried again";
  EXPECT_EQ(PodsFoundIn(R"({"spec": {"parallelism": 5, "completions": 5},
                            "status": {"succeeded": 1, "failedIndexes": "1"}})"),
            "2 2 of 3 are missing");
  EXPECT_EQ(PodsFoundIn(R"({"spec": {"parallelism": 4, "completions": 4}, "status": {
                            "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}})"),
            kNoneIsMissing);
}

TEST(JobDiagnosis, PodsThatWereNotLookedAtAreNotMissing) {
  JobAnswers answers = HealthyJob();
  answers.batch_job = R"({"spec": {"parallelism": 100}})";
  EXPECT_EQ(FoundAbout(answers, "pods"), "2 98 of 100 are missing");
  answers.has_all_pods = false;
  EXPECT_EQ(FoundAbout(answers, "pods"), "0 2 in all: 2 Running");
  answers.has_all_pods = true;
  answers.more_pods = 98;
  EXPECT_EQ(FoundAbout(answers, "pods"), "0 100 in all: 2 Running; 98 more were not looked at");
}

TEST(JobDiagnosis, PodsThatHaveEndedNeedNoSidecar) {
  nlohmann::json ended = InjectedPod("resnet-old", kNoSidecar);
  ended["status"]["phase"] = "Failed";
  EXPECT_EQ(FoundAbout(WithPods({AnswersAbout(ended), AnswersAbout(InjectedPod("resnet-0"))}),
                       "injection"),
            "0 1 pods have the sidecar");
}

TEST(JobDiagnosis, ALauncherThatAsksForNoSidecarIsNoFault) {
  nlohmann::json launcher = InjectedPod("resnet-launcher", kNoSidecar);
  launcher["metadata"].erase("annotations");
  EXPECT_EQ(FoundAbout(WithPods({AnswersAbout(launcher), AnswersAbout(InjectedPod("resnet-0"))}),
                       "injection"),
            "0 no sidecar in resnet-launcher: pods without a label or annotation of optcache get "
            "none, and a launcher or a head that reads no samples needs none");
  EXPECT_THAT(FoundAbout(WithPods({AnswersAbout(launcher)}), "injection"),
              testing::StartsWith("2 no sidecar in resnet-launcher."))
      << "no pod of the job is injected";
  EXPECT_THAT(FoundAbout(WithPods({AnswersAbout(InjectedPod("resnet-1", kNoSidecar)),
                                   AnswersAbout(InjectedPod("resnet-0"))}),
                         "injection"),
              testing::StartsWith("2 no sidecar in resnet-1."))
      << "its annotation asks for one";
}

TEST(JobDiagnosis, TellsOfWarningsAndSavingsOfItsEvents) {
  JobAnswers answers = HealthyJob();
  answers.events = R"({"items": [
    {"type": "Normal", "reason": "SuccessfulCreate", "message": "made a pod"},
    {"type": "Normal", "reason": "Saved", "message": "saved 7 requests"},
    {"type": "Warning", "reason": "NotInjected", "message": "no operator answered"}]})";
  EXPECT_EQ(FoundAbout(answers, "event NotInjected"), "1 no operator answered");
  EXPECT_EQ(FoundAbout(answers, "event Saved"), "0 saved 7 requests");
  EXPECT_EQ(FoundAbout(answers, "event SuccessfulCreate"), "nothing");
}

TEST(JobDiagnosis, ConcludesNothingFromPlansThatItMayNotSee) {
  JobAnswers answers = HealthyJob();
  answers.plans = {};
  EXPECT_EQ(FoundAbout(answers, "streams"), "nothing");
}

TEST(JobDiagnosis, SaysHowManyPagesAreMissing) {
  JobAnswers answers = HealthyJob();
  answers.silent_pages = 2;
  EXPECT_EQ(FoundAbout(answers, "metrics"),
            "1 the pages of 2 sidecars cannot be had, so their reads are missing here");
}

TEST(JobDiagnosis, AsksForPlansWhereItsDatasetsAre) {
  JobAnswers answers = HealthyJob();
  answers.pods = {AnswersAbout(
      InjectedPod("p", R"({"metadata": {"annotations": {"optcache.io/dataset": "a,shared/b"}}})"))};
  EXPECT_THAT(PlanNamespacesOf(answers), testing::ElementsAre("shared", "vision"));
}

TEST(JobDiagnosis, RefusesWhatIsNoPodAndNoList) {
  JobAnswers answers = HealthyJob();
  answers.pods[0].pod = "[]";
  EXPECT_EQ(ExplainJob(answers).error().code(), Code::kInvalidArgument);
  answers = HealthyJob();
  answers.plans = {"no list"};
  EXPECT_EQ(ExplainJob(answers).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::cli
