#include <algorithm>

#include <gtest/gtest.h>

#include "base/time_text.h"
#include "kube/conditions.h"
#include "operator/api/resources.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/warmup/decide.h"
#include "operator/reconcile/warmup/warm_job.h"
#include "support/golden_file.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

constexpr double kWarmNow = 1'800'000'000;
constexpr const char* kWarmDigest = "0123456789abcdef";

class WarmupTest : public testing::Test {
 protected:
  WarmupTest() {
    observed_.warmup = {{"metadata",
                         {{"name", "images-now"},
                          {"namespace", "vision"},
                          {"uid", "warmup-uid"},
                          {"generation", 1}}},
                        {"spec", {{"dataset", "images"}}}};
    observed_.dataset = {
        {"metadata", {{"name", "images"}, {"namespace", "vision"}, {"uid", "dataset-uid"}}},
        {"spec",
         {{"source", {{"s3", {{"bucket", "b"}, {"secretRef", {{"name", "keys"}}}}}}},
          {"cache", {{"capacity", "50%"}}}}},
        {"status", {{"manifestDigest", kWarmDigest}, {"samples", 1000}, {"bytes", 4000}}}};
    observed_.placed = Placed{.members = {"node-a", "node-b"}, .granted = 2000};
    observed_.cache = CacheView{.manifest_digest = kWarmDigest,
                                .cached_bytes = 500,
                                .cached_samples = 120,
                                .placed = {{"m1", 800}, {"m2", 1200}}};
    observed_.placed_for = std::chrono::seconds(5);
    observed_.now = kWarmNow;
  }

  // Decides, and takes over what it writes into the status.
  const Json& Decide() {
    decision_ = DecideWarmup(observed_, {.sidecar_image = "sidecar:1"});
    for (const Change& change : decision_.applies) {
      if (change.subresource == "status") observed_.warmup["status"] = change.object["status"];
    }
    return observed_.warmup["status"];
  }
  const Json* Job() const {
    for (const Change& change : decision_.applies) {
      if (change.resource == kube::kJobs) return &change.object;
    }
    return nullptr;
  }
  std::string ReasonOf(const char* type) const {
    return kube::ConditionOf(observed_.warmup, type).reason;
  }
  bool Is(const char* type) const {
    return kube::ConditionOf(observed_.warmup, type).status == kube::ConditionStatus::kTrue;
  }
  std::string Message() const { return kube::ConditionOf(observed_.warmup, "Complete").message; }

  // The Job that was made, as it is later.
  IndexJob Made(JobState state) {
    Decide();
    IndexJob job{.name = kube::KeyOf(*Job()).name,
                 .uid = "job-uid",
                 .owner_uid = "warmup-uid",
                 .state = state,
                 .created_at = kWarmNow,
                 .has_pod = true,
                 .finished_at = state == JobState::kRunning ? 0 : kWarmNow + 60,
                 .completions = 2};
    observed_.now = kWarmNow + 61;
    return job;
  }
  std::vector<std::string> Args() const {
    return Job()->at("/spec/template/spec/containers/0/args"_json_pointer);
  }
  static std::string After(const std::vector<std::string>& args, const std::string& flag) {
    const auto found = std::ranges::find(args, flag);
    return found == args.end() ? "" : *std::next(found);
  }

  WarmupObserved observed_;
  Decision decision_;
};

TEST_F(WarmupTest, BeginsWithAPodOnEachMachineThatHoldsAPart) {
  const Json& status = Decide();
  ASSERT_NE(Job(), nullptr);
  const Json& spec = Job()->at("spec");
  EXPECT_EQ(spec["completions"], 2);
  EXPECT_EQ(spec["parallelism"], 2);
  EXPECT_EQ(spec["completionMode"], "Indexed");
  EXPECT_EQ(kube::ControllerOf(*Job())->uid, "warmup-uid");
  EXPECT_FALSE(kube::LabelOf(*Job(), "optcache.io/dataset")) << "it is no index Job";
  EXPECT_EQ(kube::LabelOf(*Job(), kWarmupLabel), "images-now");
  const Json& pod = spec["template"]["spec"];
  EXPECT_EQ(pod.at("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
                   "nodeSelectorTerms/1/matchFields/0/values/0"_json_pointer),
            "m2");
  EXPECT_EQ(pod.at("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/"
                   "topologyKey"_json_pointer),
            "kubernetes.io/hostname");
  EXPECT_EQ(Args()[0], "warm");
  EXPECT_EQ(After(Args(), "--name"), "$(POD_NAMESPACE)/$(POD_NAME)");
  EXPECT_EQ(After(Args(), "--node"), "optcache-node.optcache.svc:4100");
  EXPECT_TRUE(After(Args(), "--dataset").starts_with("vision/images==s3://b"));
  EXPECT_EQ(After(Args(), "--keys"), "vision/images=/etc/optcache/keys");
  EXPECT_EQ(After(Args(), "--part"), "m1=800");
  EXPECT_EQ(std::ranges::count(Args(), "m2=1200"), 1);
  EXPECT_EQ(After(Args(), "--at"), "$(NODE_NAME)");
  EXPECT_EQ(After(Args(), "--order"), "");
  EXPECT_EQ(After(Args(), "--bytes-per-second"), "");
  EXPECT_EQ(status["startTime"], FormatTime(kWarmNow));
  EXPECT_EQ(status["manifestDigest"], kWarmDigest);
  EXPECT_EQ(ReasonOf("Complete"), "Warming");
  EXPECT_FALSE(Is("Failed"));
  EXPECT_TRUE(decision_.requeue_after);
}

TEST_F(WarmupTest, TheBandwidthIsSharedAndTheJobOfTheCachePlanSaysTheOrder) {
  observed_.warmup["spec"]["bandwidth"] = "500Mi";
  observed_.plan.jobs = {{.name = "resnet", .seed = 7, .world = 8}};
  Decide();
  EXPECT_EQ(After(Args(), "--bytes-per-second"), "vision/images=" + std::to_string(250ULL << 20U));
  EXPECT_EQ(After(Args(), "--order"), "torch-distributed size=1000 seed=7 world=8");
}

TEST_F(WarmupTest, AMachineThatGoesLeavesItsPartToTheOthers) {
  IndexJob job = Made(JobState::kRunning);
  job.machines = {"m1", "m2"};
  observed_.jobs = {job};
  Decide();
  EXPECT_TRUE(decision_.deletes.empty());
  observed_.cache->placed = {{"m1", 800}, {"m3", 1200}};
  observed_.placed_for = std::chrono::seconds(1);
  Decide();
  EXPECT_TRUE(decision_.deletes.empty()) << "it may come back";
  observed_.placed_for = std::chrono::minutes(1);
  Decide();
  ASSERT_EQ(decision_.deletes.size(), 1U);
  EXPECT_EQ(decision_.deletes[0].uid, "job-uid");
  EXPECT_NE(Message().find("m2"), std::string::npos);
  observed_.jobs.clear();
  Decide();
  ASSERT_NE(Job(), nullptr);
  EXPECT_EQ(MachinesOf(*Job()), (std::set<std::string>{"m1", "m3"}));
}

// tests/chart/test_install.py shows it to a real API server.
TEST_F(WarmupTest, TheWholeJob) {
  observed_.warmup["spec"]["bandwidth"] = "500Mi";
  observed_.plan.jobs = {{.name = "resnet", .seed = 7, .world = 8}};
  Decide();
  ExpectGolden(Job()->dump(1) + "\n", "operator/warmup-job.json");
}

TEST_F(WarmupTest, TheDatasetsLimitsHoldForItsPods) {
  observed_.warmup["spec"]["bandwidth"] = 1000;
  observed_.dataset["spec"]["limits"] = {{"requestsPerSecond", 50}, {"bytesPerSecond", 300}};
  observed_.dataset["spec"]["source"]["patience"] = "1h";
  Decide();
  EXPECT_EQ(After(Args(), "--patience"), "vision/images=3600s");
  EXPECT_EQ(After(Args(), "--bytes-per-second"), "vision/images=300");
  EXPECT_EQ(After(Args(), "--requests-per-second"), "vision/images=50");
}

TEST_F(WarmupTest, SaysWhatItWaitsFor) {
  const auto reason = [this] {
    Decide();
    EXPECT_EQ(Job(), nullptr);
    EXPECT_FALSE(Is("Complete") || Is("Failed"));
    EXPECT_TRUE(decision_.requeue_after);
    return ReasonOf("Complete");
  };
  observed_.placed->granted = 0;
  EXPECT_EQ(reason(), "NoMemory");
  observed_.placed->members.clear();
  EXPECT_EQ(reason(), "NotPlaced");
  observed_.placed.reset();
  EXPECT_EQ(reason(), "Waiting");
  observed_.dataset["status"].erase("manifestDigest");
  EXPECT_EQ(reason(), "NotIndexed");
  observed_.dataset = nullptr;
  EXPECT_EQ(reason(), "NoDataset");
  EXPECT_EQ(Message(), "there is no Dataset images in this namespace");
}

// Nodes that are just joining move it, and a pod of a machine that is not needed reads nothing.
TEST_F(WarmupTest, BeginsWhenItsNodesHaveStayedTheSameForSomeSeconds) {
  observed_.placed_for = std::chrono::seconds(2);
  Decide();
  EXPECT_EQ(Job(), nullptr);
  EXPECT_EQ(ReasonOf("Complete"), "Waiting");
  EXPECT_EQ(decision_.requeue_after, std::chrono::seconds(3));
  observed_.placed_for = std::chrono::seconds(5);
  Decide();
  EXPECT_NE(Job(), nullptr);
}

TEST_F(WarmupTest, OneThatRunsGoesOnWhenItIsPlacedAnew) {
  observed_.jobs = {Made(JobState::kRunning)};
  observed_.placed_for = {};
  Decide();
  EXPECT_EQ(ReasonOf("Complete"), "Warming");
}

TEST_F(WarmupTest, WhileItRunsItTellsHowMuchLiesAtNodes) {
  observed_.jobs = {Made(JobState::kRunning)};
  observed_.cache->cached_bytes = 1260;
  const Json& status = Decide();
  EXPECT_EQ(Job(), nullptr);
  EXPECT_EQ(status["progress"], "63%");
  EXPECT_EQ(status["bytes"], 1260);
  EXPECT_EQ(status["totalBytes"], 2000);
  EXPECT_EQ(status["samples"], 120);
  EXPECT_EQ(status["startTime"], FormatTime(kWarmNow));
  observed_.cache->cached_bytes = 2000;
  EXPECT_EQ(Decide()["progress"], "99%") << "100 % is said at its end";
}

TEST_F(WarmupTest, APodThatDoesNotRunIsTold) {
  observed_.jobs = {Made(JobState::kRunning)};
  observed_.jobs[0].trouble = "its pod is not scheduled: no room";
  Decide();
  EXPECT_EQ(ReasonOf("Complete"), "JobPending");
  EXPECT_TRUE(Message().contains("no room"));
  observed_.jobs[0].trouble = "";
  observed_.jobs[0].has_pod = false;
  Decide();
  EXPECT_EQ(ReasonOf("Complete"), "JobPending");
}

constexpr const char* kSaidWell =
    R"({"samples":60,"totalSamples":60,"held":10,"heldBytes":100,"read":49,"readBytes":890,"noRoom":1})";

TEST_F(WarmupTest, IsCompleteWhenAllPodsHaveSaidSo) {
  observed_.jobs = {Made(JobState::kSucceeded)};
  observed_.jobs[0].results = {kSaidWell};
  Decide();
  EXPECT_FALSE(Is("Complete")) << "one pod has not been seen";
  observed_.jobs[0].results = {R"({"message":"the first attempt"})", kSaidWell, kSaidWell};
  const Json& status = Decide();
  EXPECT_TRUE(Is("Complete"));
  EXPECT_FALSE(Is("Failed"));
  EXPECT_EQ(ReasonOf("Complete"), "Warmed");
  EXPECT_EQ(Message(), "118 samples, 1.93 KiB, lie at nodes; they have no room for 2 more");
  EXPECT_EQ(status["progress"], "100%");
  EXPECT_EQ(status["samples"], 118);
  EXPECT_EQ(status["bytes"], 1980);
  EXPECT_EQ(status["completionTime"], FormatTime(kWarmNow + 60));
  ASSERT_EQ(decision_.events.size(), 1U);
  EXPECT_EQ(decision_.events[0].reason, "Warmed");
  ExpectGolden(status.dump(1) + "\n", "operator/warmup-status.json");
  // It is told once, and no new Job is made when the Job is gone.
  observed_.jobs.clear();
  Decide();
  EXPECT_TRUE(decision_.events.empty());
  EXPECT_EQ(Job(), nullptr);
  EXPECT_TRUE(Is("Complete"));
  EXPECT_FALSE(decision_.requeue_after);
}

TEST_F(WarmupTest, IsCompleteWhereFewCouldNotBeRead) {
  observed_.jobs = {Made(JobState::kSucceeded)};
  observed_.jobs[0].results = {
      R"({"at":"m1","totalSamples":60,"read":59,"readBytes":900,"failed":1,"firstFailure":"a is gone"})",
      R"({"at":"m2","totalSamples":60,"read":60,"readBytes":100})"};
  Decide();
  EXPECT_TRUE(Is("Complete"));
  EXPECT_EQ(Message(), "119 samples, 1000 B, lie at nodes; 1 could not be read, first: a is gone");
}

TEST_F(WarmupTest, AMachineOnWhichTwoPodsHaveEndedCountsOnce) {
  observed_.jobs = {Made(JobState::kSucceeded)};
  const auto said = [](const char* at) {
    return std::string(R"({"at":")") + at + R"(","totalSamples":60,"read":50,"readBytes":900})";
  };
  observed_.jobs[0].results = {said("m1"), said("m1")};
  const Json& status = Decide();
  EXPECT_EQ(Message(), "50 samples, 900 B, lie at nodes; 1 of 2 nodes were filled");
  EXPECT_EQ(status["samples"], 50);
}

TEST_F(WarmupTest, OneOfWhichNodesKeepNothingHasFailed) {
  observed_.jobs = {Made(JobState::kSucceeded)};
  const std::string nothing = R"({"totalSamples":60,"noRoom":60})";
  observed_.jobs[0].results = {nothing, nothing};
  Decide();
  EXPECT_TRUE(Is("Failed"));
  EXPECT_EQ(ReasonOf("Failed"), "NothingKept");
  observed_.warmup.erase("status");
  observed_.jobs[0].results = {kSaidWell, nothing};
  Decide();
  EXPECT_TRUE(Is("Complete")) << "one of its nodes was not needed";
}

TEST_F(WarmupTest, PodsThatAreGoneDoNotHoldItUp) {
  observed_.jobs = {Made(JobState::kSucceeded)};
  observed_.now = kWarmNow + 120;
  const Json& status = Decide();
  EXPECT_TRUE(Is("Complete"));
  EXPECT_EQ(status["samples"], 120) << "what nodes report";
}

TEST_F(WarmupTest, AJobThatHasFailedSaysWhy) {
  observed_.jobs = {Made(JobState::kFailed)};
  observed_.jobs[0].trouble = "Job has reached the specified backoff limit";
  observed_.jobs[0].results = {R"({"message":"s3://b: access denied"})", kSaidWell};
  Decide();
  EXPECT_TRUE(Is("Failed"));
  EXPECT_FALSE(Is("Complete"));
  EXPECT_EQ(ReasonOf("Failed"), "WarmupFailed");
  EXPECT_EQ(Message(), "s3://b: access denied");
  ASSERT_EQ(decision_.events.size(), 1U);
  EXPECT_EQ(decision_.events[0].type, kube::EventType::kWarning);
}

TEST_F(WarmupTest, WhereNothingIsKeptNothingIsRead) {
  observed_.plan.retention = coordination::Retention::kNone;
  Decide();
  EXPECT_EQ(Job(), nullptr);
  EXPECT_EQ(ReasonOf("Failed"), "NothingKept");
}

TEST_F(WarmupTest, IsDeletedAfterItsTime) {
  observed_.warmup["spec"]["ttlSecondsAfterFinished"] = 100;
  observed_.jobs = {Made(JobState::kSucceeded)};
  observed_.jobs[0].results = {kSaidWell, kSaidWell};
  Decide();
  Decide();
  EXPECT_TRUE(decision_.deletes.empty());
  ASSERT_TRUE(decision_.requeue_after);
  EXPECT_GE(*decision_.requeue_after, std::chrono::seconds(99));
  observed_.now = kWarmNow + 160;
  Decide();
  ASSERT_EQ(decision_.deletes.size(), 1U);
  EXPECT_EQ(decision_.deletes[0].resource, api::kWarmups);
  EXPECT_EQ(decision_.deletes[0].uid, "warmup-uid");
  EXPECT_TRUE(decision_.applies.empty()) << "what goes is not written";
}

TEST_F(WarmupTest, AnotherListOfSamplesCountsForOneThatWantsIt) {
  for (const bool again : {false, true}) {
    if (again) observed_.warmup["spec"]["when"] = "OnIndexed";
    observed_.warmup.erase("status");
    observed_.dataset["status"]["manifestDigest"] = kWarmDigest;
    observed_.jobs.clear();
    observed_.now = kWarmNow;
    observed_.jobs = {Made(JobState::kSucceeded)};
    observed_.jobs[0].results = {kSaidWell, kSaidWell};
    Decide();
    const std::string first = observed_.jobs[0].name;
    observed_.dataset["status"]["manifestDigest"] = "fedcba";
    observed_.cache->manifest_digest = "fedcba";
    const Json& status = Decide();
    EXPECT_EQ(Job() != nullptr, again);
    EXPECT_EQ(Is("Complete"), !again);
    if (!again) continue;
    EXPECT_NE(kube::KeyOf(*Job()).name, first);
    EXPECT_EQ(status["manifestDigest"], "fedcba");
    EXPECT_FALSE(status.contains("completionTime"));
    observed_.cache->manifest_digest = kWarmDigest;
  }
}

TEST_F(WarmupTest, AChangeOfItsBandwidthMakesAnotherJob) {
  observed_.jobs = {Made(JobState::kRunning)};
  observed_.warmup["spec"]["bandwidth"] = 1000;
  Decide();
  ASSERT_EQ(decision_.deletes.size(), 1U);
  EXPECT_EQ(decision_.deletes[0].key.name, observed_.jobs[0].name);
  ASSERT_NE(Job(), nullptr);
  EXPECT_NE(kube::KeyOf(*Job()).name, observed_.jobs[0].name);
}

TEST_F(WarmupTest, OneThatCannotBeUnderstoodHasFailed) {
  observed_.warmup["spec"] = {{"dataset", "images"},
                              {"bandwidth", "fast"},
                              {"when", "OnIndexed"},
                              {"ttlSecondsAfterFinished", 5}};
  Decide();
  EXPECT_EQ(ReasonOf("Failed"), "Invalid");
  EXPECT_TRUE(Message().contains("spec.bandwidth"));
  EXPECT_TRUE(Message().contains("spec.ttlSecondsAfterFinished"));
}

TEST_F(WarmupTest, OneThatIsBeingDeletedIsLeftAlone) {
  observed_.warmup["metadata"]["deletionTimestamp"] = FormatTime(kWarmNow);
  Decide();
  EXPECT_TRUE(decision_.applies.empty() && decision_.deletes.empty());
}

TEST(WarmJob, LongNamesFitIntoALabelAndStayApart) {
  const std::string name(60, 'a');
  const std::string one = WarmJobName(name + "b", {}, "digest");
  const std::string other = WarmJobName(name + "c", {}, "digest");
  EXPECT_LE(one.size() + std::string("-999").size(), 63U);
  EXPECT_NE(one, other);
  EXPECT_TRUE(WarmJobName("images", {}, "digest").starts_with("images-warm-"));
  // Kubernetes refuses the Jobs of pods whose names have dots.
  EXPECT_FALSE(WarmJobName("images.v2", {}, "digest").contains('.'));
  EXPECT_TRUE(WarmJobName("images.v2", {}, "digest").starts_with("images-v2-"));
  EXPECT_NE(WarmJobName("images.v2", {}, "digest"), WarmJobName("images-v2", {}, "digest"));
}

TEST_F(WarmupTest, TheMachinesOfItsJobAreBeingWarmedUntilTheyHaveReported) {
  Decide();
  Json job = *Job();
  const auto warmed = [&job](double now) {
    kube::ObjectCache jobs;
    const kube::ObjectCache pods({{kByJob, PodsByJob()}});
    jobs.Put(kube::KeyOf(job), job);
    return MachinesBeingWarmed(jobs, pods, now);
  };
  const std::map<std::string, std::set<std::string>> both = {{"vision/images", {"m1", "m2"}}};
  EXPECT_EQ(warmed(kWarmNow), both);
  job["status"] = {{"completionTime", FormatTime(kWarmNow)},
                   {"conditions", Json::array({{{"type", "Complete"}, {"status", "True"}}})}};
  EXPECT_EQ(warmed(kWarmNow + 9), both);
  EXPECT_TRUE(warmed(kWarmNow + 11).empty());
  job.erase("status");
  job["metadata"]["deletionTimestamp"] = FormatTime(kWarmNow);
  EXPECT_TRUE(warmed(kWarmNow).empty());
  job["metadata"].erase("deletionTimestamp");
  job["metadata"].erase("annotations");
  EXPECT_TRUE(warmed(kWarmNow).empty());
}

TEST(WarmJob, WhatIsNoResultIsNone) {
  for (const char* text : {"", "[]", "3", "{}", R"({"totalSamples":"5"})", "a log line"})
    EXPECT_FALSE(ParseWarmResult(text)) << text;
  EXPECT_FALSE(ParseWarmResult(std::string(5000, ' ')));
}

}  // namespace
}  // namespace optcache::reconcile
