#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "operator/webhook/review.h"
#include "support/fake_datasets.h"

namespace optcache::webhook {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json Pod() {
  return {{"metadata",
           {{"generateName", "train-"},
            {"labels", {{"optcache.io/inject", "true"}}},
            {"annotations", {{"optcache.io/dataset", "imagenet"}}}}},
          {"spec", {{"containers", Json::array({{{"name", "c"}, {"image", "i"}}})}}}};
}

Json Request(const Json& pod) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u-1"},
            {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
            {"namespace", "vision"},
            {"operation", "CREATE"},
            {"dryRun", false},
            {"object", pod}}}};
}

Json AnswerTo(const Json& request) {
  const FakeDatasets datasets = FakeDatasets::OfCorpus();
  const auto review = ParseReview(request.dump());
  if (!review) return review.error().message();
  return Json::parse(WriteReview(*review, DecideReview(*review, datasets, {.version = "1"})));
}

TEST(Review, AnswersItsUidWithAPatch) {
  const Json answer = AnswerTo(Request(Pod()));
  EXPECT_EQ(answer["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(answer["kind"], "AdmissionReview");
  const Json& response = answer["response"];
  EXPECT_EQ(response["uid"], "u-1");
  EXPECT_EQ(response["allowed"], true);
  EXPECT_EQ(response["patchType"], "JSONPatch");
  const Json patched = Pod().patch(Json::parse(*DecodeBase64(std::string(response["patch"]))));
  EXPECT_EQ(patched["spec"]["initContainers"][0]["name"], "optcache-sidecar");
  EXPECT_EQ(response["auditAnnotations"]["reason"], "injected");
}

TEST(Review, LetsThroughWithoutAPatch) {
  Json pod = Pod();
  pod["metadata"]["labels"]["optcache.io/inject"] = "false";
  const Json response = AnswerTo(Request(pod))["response"];
  EXPECT_EQ(response["allowed"], true);
  EXPECT_FALSE(response.contains("patch"));
  EXPECT_FALSE(response.contains("patchType"));
}

TEST(Review, DeniesWithASentence) {
  Json pod = Pod();
  pod["metadata"]["annotations"]["optcache.io/dataset"] = "nothing";
  const Json response = AnswerTo(Request(pod))["response"];
  EXPECT_EQ(response["allowed"], false);
  EXPECT_EQ(response["status"]["code"], 403);
  EXPECT_THAT(std::string(response["status"]["message"]),
              HasSubstr("Dataset vision/nothing does not exist"));
  EXPECT_FALSE(response.contains("patch"));
}

TEST(Review, AnswersADryRunAlike) {
  Json request = Request(Pod());
  request["request"]["dryRun"] = true;
  EXPECT_EQ(AnswerTo(request), AnswerTo(Request(Pod())));
}

TEST(Review, KnowsTheDatasetOfTheCheckInDryRunsOfItsNamespaceAlone) {
  Json request = Request(Pod());
  Json& dataset = request["request"]["object"]["metadata"]["annotations"]["optcache.io/dataset"];
  const auto reason = [&](std::string_view name, bool dry_run) {
    dataset = name;
    request["request"]["dryRun"] = dry_run;
    return std::string(AnswerTo(request)["response"]["auditAnnotations"]["reason"]);
  };
  EXPECT_EQ(reason("optcache-check-injection", true), "injected");
  EXPECT_EQ(reason("optcache-check-injection", false), "unknown_dataset");
  EXPECT_EQ(reason("speech/optcache-check-injection", true), "unknown_dataset");
}

TEST(Review, TakesTheNamespaceOfTheRequest) {
  Json pod = Pod();
  pod["metadata"]["namespace"] = "vision";
  EXPECT_EQ(AnswerTo(Request(pod))["response"]["allowed"], true);
  pod["metadata"]["namespace"] = "speech";
  EXPECT_THAT(std::string(AnswerTo(Request(pod))), HasSubstr("the pod's is \"speech\""));
}

TEST(Review, LooksAtNothingButTheCreationOfPods) {
  const std::array<std::pair<const char*, Json>, 3> changes = {
      {{"operation", "UPDATE"},
       {"subResource", "ephemeralcontainers"},
       {"kind", {{"kind", "Job"}}}}};
  for (const auto& [key, value] : changes) {
    Json request = Request(Pod());
    request["request"][key] = value;
    const Json response = AnswerTo(request)["response"];
    EXPECT_EQ(response["allowed"], true) << key;
    EXPECT_FALSE(response.contains("patch")) << key;
    EXPECT_EQ(response["auditAnnotations"]["reason"], "not_create") << key;
  }
}

TEST(Review, RefusesWhatIsNone) {
  EXPECT_THAT(std::string(AnswerTo(Json::array())), HasSubstr("expected AdmissionReview"));
  Json old = Request(Pod());
  old["apiVersion"] = "admission.k8s.io/v1beta1";
  EXPECT_THAT(std::string(AnswerTo(old)), HasSubstr("admissionReviewVersions"));
  Json anonymous = Request(Pod());
  anonymous["request"].erase("uid");
  EXPECT_THAT(std::string(AnswerTo(anonymous)), HasSubstr("uid"));
  EXPECT_FALSE(ParseReview("{"));
}

TEST(Review, NamesThePodForTheLog) {
  EXPECT_EQ(ParseReview(Request(Pod()).dump())->name, "train-*");
  Json pod = Pod();
  pod["metadata"]["name"] = "train-0";
  EXPECT_EQ(ParseReview(Request(pod).dump())->name, "train-0");
}

}  // namespace
}  // namespace optcache::webhook
