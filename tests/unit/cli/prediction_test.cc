#include "cli/plan/prediction.h"

#include <gtest/gtest.h>

#include "cli/plan/prediction_report.h"
#include "cli/terminal/stop_wait.h"
#include "support/golden_file.h"
#include "unit/cli/fake_kubectl.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kApply = "apply --dry-run=server --output=json --filename=plan.yaml";
constexpr const char* kGetPlans = "get cacheplans.optcache.io/imagenet";
constexpr const char* kAnnotate =
    R"(patch cacheplans.optcache.io/imagenet --namespace=vision --type=merge --patch={"metadata":{"annotations":{"optcache.io/predict":)";
constexpr const char* kRemove =
    R"(patch cacheplans.optcache.io/imagenet --namespace=vision --type=json --patch=[{"op":"test",)";

constexpr const char* kInFile = R"({"apiVersion": "optcache.io/v1alpha1", "kind": "CachePlan",
  "metadata": {"namespace": "vision", "name": "imagenet"},
  "spec": {"dataset": "imagenet", "retention": "LRU"}})";
constexpr const char* kAnswer = R"({"id": "a1b2", "hitRatio": "0.562",
  "storeBytesPerEpoch": 61811146752, "movedBytesPerEpoch": 1073741824, "worse": false,
  "current": {"hitRatio": "0.300", "storeBytesPerEpoch": 98784247808, "movedBytesPerEpoch": 0},
  "nodes": [{"name": "m1", "storeBytes": 20603715584, "movedBytes": 357913941},
            {"name": "m2", "storeBytes": 20603715584, "movedBytes": 357913941},
            {"name": "m3", "storeBytes": 20603715584, "movedBytes": 357913942}]})";

// The plan while the question is on it.
std::string Asked(const char* answer = nullptr) {
  nlohmann::json plan = PlanAsJson();
  plan["metadata"]["annotations"]["optcache.io/predict"] = nlohmann::json{
      {"id", "a1b2"},
      {"spec",
       ContentOf(nlohmann::json::parse(kInFile)["spec"])}}.dump();
  if (answer != nullptr) plan["status"]["prediction"] = nlohmann::json::parse(answer);
  return plan.dump();
}

std::vector<FakeKubectl::Rule> PredictionRules(const std::vector<std::string>& plans) {
  return {{.words = kApply, .answers = {kInFile}},
          {.words = kGetPlans, .answers = plans},
          {.words = "--type=merge", .answers = {"patched"}},
          {.words = "--type=json", .answers = {"patched"}}};
}

Result<AnsweredPrediction> Predict(const FakeKubectl& fake, const std::string& file = "plan.yaml",
                                   Duration timeout = std::chrono::minutes(2)) {
  return AskForPrediction(fake.kubectl(),
                          {.file = file,
                           .name_space = "",
                           .id = "a1b2",
                           .timeout = timeout,
                           .interval = milliseconds(1)},
                          [](Duration) { return true; });
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(Prediction, IsAskedForAwaitedAndTakenBack) {
  const FakeKubectl fake(PredictionRules({PlanAsJson().dump(), Asked(),
                                          Asked(R"({"id": "old", "storeBytesPerEpoch": 1})"),
                                          Asked(R"({"id": "a1b2"})"), Asked(kAnswer)}));
  const auto answer = Predict(fake);
  ASSERT_TRUE(answer) << answer.error().message();
  ExpectGolden(PredictionAsTable(*answer), "cli/rollout/predict.txt");
  ExpectGolden(PredictionAsJson(*answer), "cli/rollout/predict.json");
  EXPECT_EQ(CountOf(fake.Writes(), kAnnotate), 1U) << fake.Writes();
  EXPECT_EQ(CountOf(fake.Writes(), kRemove), 1U) << fake.Writes();
}

TEST(Prediction, IsTakenBackWhenItIsInterrupted) {
  const FakeKubectl fake(PredictionRules({PlanAsJson().dump(), Asked()}));
  int waits = 0;
  const auto answer =
      AskForPrediction(fake.kubectl(), {.file = "plan.yaml", .name_space = "", .id = "a1b2"},
                       [&waits](Duration) { return ++waits < 3; });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kCancelled);
  EXPECT_EQ(CountOf(fake.Writes(), kRemove), 1U) << fake.Writes();
}

TEST(Prediction, IsTakenBackWhenNobodyAnswers) {
  const FakeKubectl fake(PredictionRules({PlanAsJson().dump(), Asked()}));
  const auto answer = Predict(fake, "plan.yaml", milliseconds(50));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(answer.error().message().contains("the operator has not answered"));
  EXPECT_EQ(CountOf(fake.Writes(), kRemove), 1U) << fake.Writes();
}

TEST(Prediction, IsTakenBackEvenIfAskingSeemedToFail) {
  std::vector<FakeKubectl::Rule> rules = PredictionRules({PlanAsJson().dump()});
  rules[2].answers = {"Error: connection lost"};
  rules[3].answers = {"Error: connection lost", "patched"};
  const FakeKubectl fake(rules);
  EXPECT_FALSE(Predict(fake));
  EXPECT_EQ(CountOf(fake.Writes(), kRemove), 2U) << fake.Writes();
}

TEST(Prediction, LeavesSomebodyElsesQuestionAlone) {
  nlohmann::json other = PlanAsJson();
  other["metadata"]["annotations"]["optcache.io/predict"] = R"({"id": "other"})";
  const FakeKubectl fake(PredictionRules({PlanAsJson().dump(), Asked(), other.dump()}));
  const auto answer = Predict(fake);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kConflict);
  EXPECT_EQ(CountOf(fake.Writes(), kRemove), 0U) << fake.Writes();
}

TEST(Prediction, TakesWhatIsAtStandardInput) {
  std::vector<FakeKubectl::Rule> rules =
      PredictionRules({PlanAsJson().dump(), Asked(), Asked(kAnswer)});
  rules[0].words = "apply --dry-run=server --output=json --filename=-";
  const FakeKubectl fake(rules);
  PredictionRequest request{.file = "-", .input = kInFile, .name_space = "", .id = "a1b2"};
  request.interval = milliseconds(1);
  const auto answer = AskForPrediction(fake.kubectl(), request, [](Duration) { return true; });
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(fake.Input(), kInFile);  // at one call, and nothing at the others
}

TEST(Prediction, SaysWhatTheOperatorCannotPredict) {
  const FakeKubectl fake(PredictionRules(
      {PlanAsJson().dump(), Asked(R"({"id": "a1b2", "error": "the Dataset is not indexed"})")}));
  const auto answer = Predict(fake);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message(), "plan.yaml cannot be predicted: the Dataset is not indexed");
}

TEST(Prediction, SurvivesAClusterThatIsAwayForAMoment) {
  const std::string down = "Error: unable to connect";
  const FakeKubectl fake(
      PredictionRules({PlanAsJson().dump(), down, down, down, down, Asked(kAnswer)}));
  EXPECT_TRUE(Predict(fake));
  const FakeKubectl gone(PredictionRules({PlanAsJson().dump(), down}));
  EXPECT_EQ(Predict(gone).error().code(), Code::kUnavailable);
}

TEST(Prediction, NeedsOneCachePlanInTheFile) {
  const std::string plan = kInFile;
  const struct {
    std::string printed;
    std::string said;
  } cases[] = {{R"({"kind": "Pod", "apiVersion": "v1"})",
                "there is no CachePlan of optcache.io in it, but: Pod"},
               {R"({"kind": "List", "items": []})", "but: nothing"},
               {R"({"kind": "List", "items": [)" + plan + "," + plan + "]}", "several CachePlans"},
               {"Error: error validating data: unknown field \"spec.retentoin\"", "retentoin"},
               {"not JSON", "there is no CachePlan"}};
  for (const auto& [printed, said] : cases) {
    std::vector<FakeKubectl::Rule> rules = PredictionRules({PlanAsJson().dump()});
    rules[0].answers = {printed};
    const FakeKubectl fake(rules);
    const auto answer = Predict(fake);
    ASSERT_FALSE(answer) << printed;
    EXPECT_EQ(answer.error().code(), Code::kInvalidArgument) << printed;
    EXPECT_TRUE(answer.error().message().contains(said)) << answer.error().message();
    EXPECT_FALSE(fake.Writes().contains("patch"));
  }
}

std::string RefusedFor(const std::string& kubectl_says) {
  std::vector<FakeKubectl::Rule> rules = PredictionRules({PlanAsJson().dump()});
  rules[0].answers = {kubectl_says};
  const auto answer = Predict(FakeKubectl(rules));
  if (answer) return "no error";
  EXPECT_EQ(answer.error().code(), Code::kNotFound);
  return answer.error().message();
}

TEST(Prediction, SaysThatOptcacheIsNotInstalled) {
  const std::string missing =
      R"(Error: resource mapping not found for name: "imagenet" namespace: "vision" from "plan.yaml": no matches for kind )";
  const std::string ours =
      RefusedFor(missing + "\"CachePlan\" in version \"optcache.io/v1alpha1\"");
  EXPECT_TRUE(ours.starts_with("optcache is not installed in this cluster")) << ours;
  const std::string theirs = RefusedFor(missing + "\"Queue\" in version \"example.com/v1\"");
  EXPECT_TRUE(theirs.contains("example.com/v1")) << theirs;
  EXPECT_FALSE(theirs.contains("optcache is not installed")) << theirs;
}

TEST(Prediction, FindsTheCachePlanBesideOthers) {
  std::vector<FakeKubectl::Rule> rules = PredictionRules({PlanAsJson().dump(), Asked(kAnswer)});
  rules[0].answers = {R"({"kind": "List", "items": [{"kind": "Dataset"}, )" + std::string(kInFile) +
                      "]}"};
  EXPECT_TRUE(Predict(FakeKubectl(rules)));
}

TEST(Prediction, NeedsThePlanInTheCluster) {
  const FakeKubectl fake(PredictionRules({"Error from server (NotFound): not found"}));
  const auto answer = Predict(fake);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kNotFound);
  EXPECT_TRUE(answer.error().message().contains("apply a first one")) << answer.error().message();
}

TEST(PredictionReport, SaysWhenItIsWorseOrNothingNew) {
  AnsweredPrediction answer{.plan = ReadPlanResource(PlanAsJson().dump()).value(),
                            .asked = ContentOf({})};
  answer.prediction.current = {.hit_ratio = "0.300", .store_bytes = 1000, .moved_bytes = 0};
  answer.prediction.asked = {.hit_ratio = "0.297", .store_bytes = 2000, .moved_bytes = 0};
  EXPECT_FALSE(PredictionAsTable(answer).contains("worse")) << "the operator decides";
  EXPECT_TRUE(PredictionAsJson(answer).contains("\"worse\": false"));
  answer.prediction.current_error = "node a could not derive it: 300 ordered streams";
  EXPECT_TRUE(PredictionAsTable(answer).contains("PRESENT is not known: node a could not"));
  EXPECT_TRUE(PredictionAsJson(answer).contains("\"currentError\": \"node a could not"));
  EXPECT_FALSE(PredictionAsJson(answer).contains("\"worse\"")) << "that is not known";
  answer.prediction.worse = true;
  EXPECT_TRUE(PredictionAsTable(answer).contains("acknowledge"));
  answer.asked = answer.plan.content;
  EXPECT_TRUE(PredictionAsTable(answer).contains("asks for this already"));
}

TEST(StopWait, EndsWithASignal) {
  StopWait stop;
  EXPECT_TRUE(stop.For(milliseconds(1)));
  ::raise(SIGINT);
  EXPECT_FALSE(stop.For(std::chrono::hours(1)));
  EXPECT_TRUE(stop.For(milliseconds(1)));
}

}  // namespace
}  // namespace optcache::cli
