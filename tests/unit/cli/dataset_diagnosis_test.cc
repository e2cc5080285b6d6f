#include "cli/explain/dataset_diagnosis.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/object.h"
#include "support/golden_file.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

using kube::Json;

// Ready, with a plan that all nodes follow.
Json HealthyDataset() {
  return Json::parse(R"({
  "metadata": {"namespace": "vision", "name": "imagenet", "generation": 2},
  "status": {
    "observedGeneration": 2, "samples": 1281167, "bytes": 150323855360, "cachedBytes": 45097156608,
    "hitRatio": "0.302", "predictedHitRatio": "0.300",
    "capacity": {"granted": 45097156608, "maximum": 45097156608},
    "saved": {"requests": 386912, "bytes": 45097156608, "waitedSeconds": 310, "cost": "12.40"},
    "nodes": [{"name": "m1", "bytes": 22548578304}, {"name": "m2", "bytes": 22548578304}],
    "conditions": [
      {"type": "Indexed", "status": "True", "reason": "Indexed", "message": "1281167 samples, 140 GiB"},
      {"type": "SourceReachable", "status": "True", "reason": "Listed", "message": "it was listed"},
      {"type": "Placed", "status": "True", "reason": "Placed",
       "message": "2 of 3 nodes; memory left out 1: m3 (cordoned); all that it asks for"},
      {"type": "ManifestLost", "status": "False", "reason": "Held", "message": "nodes hold it"},
      {"type": "Degraded", "status": "False", "reason": "AsWanted", "message": "nothing"},
      {"type": "Ready", "status": "True", "reason": "Serving", "message": "served"}]}})");
}

Json ListOf(const std::vector<Json>& items) {
  return {{"items", items}};
}

DatasetAnswers HealthyAnswers() {
  return {.dataset = HealthyDataset().dump(),
          .plans = ListOf({CompletePlan()}).dump(),
          .warmups = R"({"items": []})",
          .node_pods = R"({"items": [{"metadata": {"name": "node-a"}, "spec": {"nodeName": "m1"},
              "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]})",
          .events = R"({"items": []})"};
}

void SetCondition(Json& dataset, const std::string& type, const std::string& status,
                  const std::string& reason, const std::string& message) {
  Json& all = dataset["status"]["conditions"];
  std::erase_if(all.get_ref<Json::array_t&>(), [&](Json& old) { return old["type"] == type; });
  all.push_back({{"type", type},
                 {"status", status},
                 {"reason", reason},
                 {"message", message},
                 {"lastTransitionTime", "2026-01-05T10:00:00Z"}});
}

DatasetAnswers NotIndexed(const std::string& reason, const std::string& message) {
  DatasetAnswers answers = HealthyAnswers();
  Json dataset = HealthyDataset();
  SetCondition(dataset, "Indexed", "False", reason, message);
  SetCondition(dataset, "Placed", "False", "NotIndexed", "nodes are chosen later");
  SetCondition(dataset, "Ready", "False", reason, message);
  if (reason.starts_with("Source"))
    SetCondition(dataset, "SourceReachable", "False", reason, message);
  else
    SetCondition(dataset, "SourceReachable", "Unknown", "NotTried", "not yet");
  dataset["status"]["hitRatio"] = "";
  dataset["status"].erase("saved");
  answers.dataset = dataset.dump();
  answers.plans = R"({"items": []})";
  return answers;
}

DatasetAnswers WithCondition(const std::string& type, const std::string& status,
                             const std::string& reason, const std::string& message) {
  DatasetAnswers answers = HealthyAnswers();
  Json dataset = HealthyDataset();
  SetCondition(dataset, type, status, reason, message);
  const bool stops = type == "Placed" || type == "ManifestLost";
  if (stops) SetCondition(dataset, "Ready", "False", reason, message);
  answers.dataset = dataset.dump();
  return answers;
}

DatasetAnswers WithPatch(const char* patch) {
  DatasetAnswers answers = HealthyAnswers();
  Json dataset = HealthyDataset();
  dataset.merge_patch(Json::parse(patch));
  answers.dataset = dataset.dump();
  return answers;
}

DatasetAnswers WithPlan(const Json& plan) {
  DatasetAnswers answers = HealthyAnswers();
  answers.plans = ListOf({plan}).dump();
  return answers;
}

Explanation Told(const DatasetAnswers& answers) {
  auto explanation = ExplainDataset(answers);
  EXPECT_TRUE(explanation) << explanation.error().message();
  return *explanation;
}

std::string Titled(const std::string& title, const DatasetAnswers& answers) {
  return "# " + title + "\n" + ExplanationAsText(Told(answers)) + "\n";
}

TEST(DatasetDiagnosis, TellsWhyADatasetIsNotReady) {
  std::string text;
  text += Titled("no operator", WithPatch(R"({"status": null})"));
  text += Titled("indexing", NotIndexed("Indexing", "the index Job runs"));
  text += Titled("the source refuses the keys", NotIndexed("SourceForbidden", "403 of the store"));
  text += Titled("the index Job's pod does not start",
                 NotIndexed("JobPending", "ErrImagePull: no such image"));
  text += Titled("a reason that is not known", NotIndexed("Novel", "something else"));
  text += Titled("no node matches", WithCondition("Placed", "False", "NoMatchingNode",
                                                  "0 of 3 nodes: nodeSelector left out 3"));
  text += Titled("the list of samples is lost",
                 WithCondition("ManifestLost", "True", "NoHolder", "no node has it"));
  ExpectGolden(text, "cli/explain-dataset-not-ready.txt");
}

TEST(DatasetDiagnosis, TellsWhyADatasetIsSlow) {
  std::string text;
  text += Titled("healthy", HealthyAnswers());
  text += Titled("the store is silent",
                 WithCondition("SourceReachable", "False", "StoreSilent",
                               "it answers nothing to 3 of 8 sidecars (last: timeout)"));
  text += Titled("less memory than asked for",
                 WithCondition("Degraded", "True", "CapacityNotGranted",
                               "nodes have room for 21 GiB of the 42 GiB that it asks for"));
  text += Titled("fewer hits than predicted", WithPatch(R"({"status": {"hitRatio": "0.2"}})"));
  text += Titled("a rollout under way",
                 WithPlan(PlanIn("Activate", "EpochAwaited", "1 of 3",
                                 R"({"status": {"nodes": {"prepared": 3, "active": 1}}})")));
  text += Titled("a rollout was stopped", WithPlan(StoppedPlan()));
  Json unknown = CompletePlan();
  unknown["status"]["jobs"][0]["order"] = "Unknown";
  text += Titled("an order is not known", WithPlan(unknown));
  ExpectGolden(text, "cli/explain-dataset-slow.txt");
  ExpectGolden(ExplanationAsJson(Told(HealthyAnswers())), "cli/explain-dataset.json");
}

// What is found about one thing, "severity what".
std::string FoundAbout(const DatasetAnswers& answers, std::string_view about) {
  for (const Finding& finding : Told(answers).findings) {
    if (finding.about == about)
      return std::to_string(static_cast<int>(finding.severity)) + " " + finding.what;
  }
  return "nothing";
}

TEST(DatasetDiagnosis, ThePlacementIsNotBlamedForWhatTheIndexLacks) {
  EXPECT_EQ(FoundAbout(NotIndexed("SourceForbidden", "403"), "placement"), "nothing");
  EXPECT_EQ(FoundAbout(NotIndexed("SourceForbidden", "403"), "source"), "nothing");
}

TEST(DatasetDiagnosis, FaultsStandBeforeWhatIsFine) {
  const Explanation explanation =
      Told(WithCondition("SourceReachable", "False", "StoreSilent", "no answer"));
  EXPECT_EQ(explanation.findings.front().about, "source");
  EXPECT_EQ(explanation.findings.front().what,
            "StoreSilent: no answer (since 2026-01-05T10:00:00Z)");
}

TEST(DatasetDiagnosis, AnObjectThatHasChangedIsAFaultOfTheList) {
  const Finding first =
      Told(WithCondition("Stale", "True", "SourceChanged", "a.jpg is another one"))
          .findings.front();
  EXPECT_EQ(first.about, "list of samples");
  EXPECT_TRUE(first.what.starts_with("SourceChanged: a.jpg is another one")) << first.what;
  EXPECT_NE(first.to_do.find("optcache.io/reindex="), std::string::npos) << first.to_do;
}

TEST(DatasetDiagnosis, TellsOfAChangeThatIsNotInForceYet) {
  EXPECT_EQ(
      FoundAbout(WithPatch(R"({"metadata": {"generation": 3}})"), "operator"),
      "1 the newest change of the spec is not in force: generation 2 is, and the newest is 3");
  EXPECT_EQ(FoundAbout(HealthyAnswers(), "operator"), "nothing");
}

TEST(DatasetDiagnosis, NamesNodesThatAreNotReady) {
  DatasetAnswers answers = HealthyAnswers();
  answers.node_pods = R"({"items": [
    {"metadata": {"name": "node-a"}, "spec": {"nodeName": "m1"},
     "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    {"metadata": {"name": "node-b"}}]})";
  EXPECT_EQ(FoundAbout(answers, "nodes"),
            "1 2 of 2 nodes of the cache are not ready: node-a on m1, node-b");
}

TEST(DatasetDiagnosis, TellsOfItsOwnWarmupsAlone) {
  DatasetAnswers answers = HealthyAnswers();
  answers.warmups = R"({"items": [
    {"metadata": {"name": "w1"}, "spec": {"dataset": "imagenet"}, "status": {"progress": "40%",
     "conditions": [{"type": "Complete", "status": "False", "reason": "Warming", "message": "1 of 2"}]}},
    {"metadata": {"name": "w2"}, "spec": {"dataset": "imagenet"}, "status": {"conditions": [
     {"type": "Failed", "status": "True", "reason": "WarmupFailed", "message": "the store is gone"}]}},
    {"metadata": {"name": "w3"}, "spec": {"dataset": "words"}}]})";
  EXPECT_EQ(FoundAbout(answers, "warm-up w1"), "0 Warming (40%): 1 of 2");
  EXPECT_EQ(FoundAbout(answers, "warm-up w2"), "1 WarmupFailed: the store is gone");
  EXPECT_EQ(FoundAbout(answers, "warm-up w3"), "nothing");
}

TEST(DatasetDiagnosis, TellsOfEventsThatNoConditionTells) {
  DatasetAnswers answers = HealthyAnswers();
  answers.events = R"({"items": [{"reason": "ApplyFailed", "message": "exceeded quota"},
                                 {"reason": "StoreSilent", "message": "it was silent"}]})";
  EXPECT_EQ(FoundAbout(answers, "event ApplyFailed"), "1 exceeded quota");
  EXPECT_EQ(FoundAbout(answers, "event StoreSilent"), "nothing");
}

TEST(DatasetDiagnosis, APlanThatItDoesNotFollowIsNotInForce) {
  Json other = PlanAsJson(R"({"metadata": {"name": "other"}, "status": {"jobs": null}})");
  other["status"]["conditions"][0] = {{"type", "Available"},
                                      {"status", "False"},
                                      {"reason", "AnotherPlan"},
                                      {"message", "it follows imagenet"}};
  DatasetAnswers answers = HealthyAnswers();
  answers.plans = ListOf({CompletePlan(), other}).dump();
  EXPECT_EQ(FoundAbout(answers, "plan other"), "nothing");
  EXPECT_EQ(FoundAbout(answers, "rollout of other"),
            "1 cacheplan \"other\" is not in use: AnotherPlan: it follows imagenet");
}

TEST(DatasetDiagnosis, ConcludesNothingFromWhatItMayNotSee) {
  DatasetAnswers answers{.dataset = HealthyDataset().dump()};
  answers.unseen = {Warn("your rights", "CachePlans cannot be shown", "Ask.")};
  EXPECT_EQ(FoundAbout(answers, "plan"), "nothing");
  EXPECT_EQ(FoundAbout(answers, "streams"), "nothing");
  EXPECT_EQ(FoundAbout(answers, "your rights"), "1 CachePlans cannot be shown");
}

TEST(DatasetDiagnosis, RefusesWhatIsNoDataset) {
  for (const char* text : {"", "[]", "{}"})
    EXPECT_EQ(ExplainDataset({.dataset = text}).error().code(), Code::kInvalidArgument) << text;
  DatasetAnswers answers = HealthyAnswers();
  answers.plans = "no list";
  EXPECT_EQ(ExplainDataset(answers).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::cli
