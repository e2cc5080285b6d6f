// Asks a question by an annotation on the CachePlan, and waits until the operator has answered it
// in the status.
//
//   apply --dry-run=server ─► the content as the cluster would have it ─► Question ─► AwaitAnswer
//
// The destructor of Question takes the annotation away again, with a patch that tests that it is
// still ours. So neither an error nor an interruption leaves a question behind, and another
// command's question stays. A few lost answers of the API server in a row are borne.

#include "cli/plan/prediction.h"

#include <optional>

#include <fmt/format.h>

#include "cli/cluster/cluster_questions.h"
#include "cli/cluster/plan_questions.h"

namespace optcache::cli {
namespace {

using kube::Json;

constexpr int kRemovals = 3;        // attempts
constexpr int kMaxLostAnswers = 5;  // of questions, one after the other

std::string NameOf(const PredictionRequest& request) {
  return request.file == "-" ? "standard input" : request.file;
}

struct PlanInFile {
  std::string name_space;
  std::string name;
  Json content;
};

Result<PlanInFile> FindPlan(const Json& printed, const std::string& file) {
  const bool is_list = kube::TextAt(printed, "/kind") == "List";
  const Json objects = is_list ? kube::Items(printed, "/items") : Json::array({printed});
  std::optional<PlanInFile> plan;
  std::string kinds;
  for (const Json& object : objects) {
    const std::string kind = kube::TextAt(object, "/kind");
    kinds += (kinds.empty() ? "" : ", ") + kind;
    if (kind != "CachePlan" || !kube::TextAt(object, "/apiVersion").starts_with("optcache.io/"))
      continue;
    if (plan) return Error(Code::kInvalidArgument, file + ": several CachePlans, ask one by one");
    plan = PlanInFile{.name_space = kube::KeyOf(object).ns,
                      .name = kube::KeyOf(object).name,
                      .content = ContentOf(kube::Find(object, "/spec"))};
  }
  if (plan) return *std::move(plan);
  return Error(Code::kInvalidArgument,
               fmt::format("{}: there is no CachePlan of optcache.io in it, but: {}", file,
                           kinds.empty() ? "nothing" : kinds));
}

// The API server checks it, fills in defaults and merges it as it would at `kubectl apply`.
Result<PlanInFile> ReadFileAsApplied(const Kubectl& kubectl, const PredictionRequest& request) {
  std::vector<std::string> arguments = {"apply", "--dry-run=server", "--output=json",
                                        "--filename=" + request.file};
  if (!request.name_space.empty()) arguments.push_back("--namespace=" + request.name_space);
  const auto printed = kubectl.Run(arguments, request.input);
  if (!printed && SaysMissing(printed.error()))
    return std::unexpected(ExplainMissing(printed.error()));
  if (!printed) {
    const bool is_refused = printed.error().code() == Code::kUnavailable;
    return Error(is_refused ? Code::kInvalidArgument : printed.error().code(),
                 printed.error().message());
  }
  return FindPlan(Json::parse(*printed, nullptr, /*allow_exceptions=*/false), NameOf(request));
}

// The annotation on the plan, taken away again if it still is ours.
class Question {
 public:
  Question(const Kubectl& kubectl, const PlanResource& plan, std::string text)
      : kubectl_(kubectl), plan_(plan), text_(std::move(text)) {}
  ~Question() {
    const Json patch = Json::array(
        {{{"op", "test"}, {"path", "/metadata/annotations/optcache.io~1predict"}, {"value", text_}},
         {{"op", "remove"}, {"path", "/metadata/annotations/optcache.io~1predict"}}});
    for (int attempt = 0; attempt < kRemovals && is_ours_; ++attempt) {
      const auto answer = kubectl_.Run({"patch", "cacheplans.optcache.io/" + plan_.name,
                                        "--namespace=" + plan_.name_space, "--type=json",
                                        "--patch=" + patch.dump()});
      if (answer) break;
    }
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  Status Ask() {
    is_ours_ = true;  // also where the answer is lost
    return PatchPlan(kubectl_, plan_,
                     {{"metadata", {{"annotations", {{"optcache.io/predict", text_}}}}}});
  }
  // Somebody else has asked, and it has to stay.
  bool WasReplaced(const PlanResource& now) {
    if (now.predict == text_) return false;
    is_ours_ = false;
    return true;
  }

 private:
  const Kubectl& kubectl_;
  const PlanResource plan_;
  const std::string text_;
  bool is_ours_ = false;
};

Status Unanswered(const PlanResource& plan, const PredictionRequest& request) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(request.timeout).count();
  return {
      Code::kDeadlineExceeded,
      fmt::format("the operator has not answered within {} s: does it run and lead (kubectl "
                  "optcache status)? Large datasets take longer: --timeout 10m. What it says of "
                  "the plan: {}",
                  seconds, plan.available.message.empty() ? "nothing" : plan.available.message)};
}

// One without figures and without an error is on its way.
bool IsAnswer(const Prediction& prediction, const std::string& id) {
  return prediction.id == id && (!prediction.error.empty() || prediction.asked.store_bytes);
}

Result<Prediction> AwaitAnswer(const Kubectl& kubectl, const PredictionRequest& request,
                               const PlanResource& plan, Question& question, const Wait& wait) {
  const MonotonicTime begun = SystemClock().Now();
  int failures = 0;
  while (true) {
    if (!wait(request.interval)) {
      return Error(Code::kCancelled, "interrupted: the question is taken back");
    }
    const auto now = AskForPlan(kubectl, plan.name_space, plan.name);
    if (now && now->prediction && IsAnswer(*now->prediction, request.id)) return *now->prediction;
    if (now && question.WasReplaced(*now)) {
      return Error(
          Code::kConflict,
          fmt::format(
              "another command asks for a prediction of {} at the same time: ask again later",
              plan.Reference()));
    }
    failures = now ? 0 : failures + 1;
    const bool is_over = !now && now.error().code() == Code::kNotFound;
    if (is_over || failures == kMaxLostAnswers) return std::unexpected(now.error());
    if (SystemClock().Now() - begun >= request.timeout)
      return std::unexpected(Unanswered(now ? *now : plan, request));
  }
}

}  // namespace

Result<AnsweredPrediction> AskForPrediction(const Kubectl& kubectl,
                                            const PredictionRequest& request, const Wait& wait) {
  ASSIGN_OR_RETURN(PlanInFile in_file, ReadFileAsApplied(kubectl, request));
  auto plan = AskForPlan(kubectl, in_file.name_space, in_file.name);
  if (!plan && plan.error().code() == Code::kNotFound) {
    return Error(Code::kNotFound,
                 fmt::format("{}\nThe operator predicts for a CachePlan that is in the cluster: "
                             "apply a first one, or see `optcache simulate`",
                             plan.error().message()));
  }
  if (!plan) return std::unexpected(plan.error());
  const Json text = {{"id", request.id}, {"spec", in_file.content}};
  Question question(kubectl, *plan, text.dump());
  RETURN_IF_ERROR(question.Ask());
  ASSIGN_OR_RETURN(Prediction prediction, AwaitAnswer(kubectl, request, *plan, question, wait));
  if (!prediction.error.empty()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} cannot be predicted: {}", NameOf(request), prediction.error));
  }
  return AnsweredPrediction{.plan = *std::move(plan),
                            .asked = std::move(in_file.content),
                            .prediction = std::move(prediction)};
}

}  // namespace optcache::cli
