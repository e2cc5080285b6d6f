// Answers a question in an annotation by two trials that nodes derive: of what is asked, and of
// what is in force.
//
// The id of a trial has the revision's hash and the question's id in it, so a changed question is
// another trial. The answer has figures once all nodes have derived both from equal inputs. If
// inputs differ, because jobs or nodes came and went, both trials are asked for again under a new
// name, three times at most. Nothing is kept but the status.

#include "operator/reconcile/cacheplan/prediction.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "operator/reconcile/cacheplan/revisions.h"
#include "operator/reconcile/cacheplan/rollout_status.h"

namespace optcache::reconcile {
namespace {

using coordination::RolloutNode;
using coordination::TrialReport;
using kube::Json;

constexpr std::size_t kMaxQuestionBytes = 32U << 10;
constexpr std::size_t kMaxIdBytes = 63;
constexpr std::size_t kMaxNodesListed = 64;
// Where jobs come and go all the time, nodes may never go by the same inputs.
constexpr std::uint32_t kMaxTriesOfQuestion = 3;

const TrialReport* TrialAt(const RolloutNode& node, const std::string& id) {
  const auto found = std::ranges::find(node.trials, id, &TrialReport::id);
  return found == node.trials.end() ? nullptr : &*found;
}

// The hash of the content that is asked for.
std::string RevisionAskedBy(const PredictionQuestion& question) {
  return question.trial.substr(0, question.trial.find('@'));
}

// How often the trials of that question were asked for again. Another content under the same id is
// another question; what is asked again has no revision yet.
std::uint32_t TriesOf(const Json& plan, const std::string& id, const std::string& revision) {
  const Json& answer = kube::Find(plan, "/status/prediction");
  const std::string answered = kube::TextAt(answer, "/revision");
  const bool is_same = answered.empty() || answered == revision;
  if (kube::TextAt(answer, "/id") != id || !is_same) return 0;
  const std::int64_t tries = kube::NumberAt(answer, "/tries").value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(tries, 0, kMaxTriesOfQuestion));
}

// "a1b2", and "a1b2-1" when it is tried once more.
std::string NameOfTry(const PredictionQuestion& question) {
  return question.tries == 0 ? question.id : fmt::format("{}-{}", question.id, question.tries);
}

}  // namespace

std::optional<PredictionQuestion> QuestionOf(const Json& plan) {
  const auto text = kube::AnnotationOf(plan, kPredictAnnotation);
  if (!text) return std::nullopt;
  PredictionQuestion question;
  if (text->size() > kMaxQuestionBytes) {
    question.error = fmt::format("{}: {} bytes, allowed: {}", kPredictAnnotation, text->size(),
                                 kMaxQuestionBytes);
    return question;
  }
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    question.error =
        fmt::format(R"({}: no JSON as {{"id": "a1", "spec": {{}}}})", kPredictAnnotation);
    return question;
  }
  const std::string id = kube::TextAt(json, "/id");
  if (id.empty() || id.size() > kMaxIdBytes) {
    question.error =
        fmt::format("{}: id: needed, at most {} characters", kPredictAnnotation, kMaxIdBytes);
    return question;
  }
  question.id = id;
  auto spec = api::ParseRevisionContent(kube::Find(json, "/spec"));
  if (!spec) {
    question.error = fmt::format("{}: {}", kPredictAnnotation, spec.error().message());
    return question;
  }
  question.spec = *std::move(spec);
  const std::string revision = RevisionHash(api::RevisionContent(question.spec), 0);
  question.tries = TriesOf(plan, id, revision);
  question.trial = fmt::format("{}@predict-{}", revision, NameOfTry(question));
  return question;
}

std::string PresentTrial(const PredictionQuestion& question, std::string_view current_revision) {
  return fmt::format("{}@present-{}", current_revision, NameOfTry(question));
}

bool IsAnswered(const Json& plan, const PredictionQuestion& question) {
  const Json& answer = kube::Find(plan, "/status/prediction");
  return question.error.empty() && kube::TextAt(answer, "/id") == question.id &&
         kube::TextAt(answer, "/revision") == RevisionAskedBy(question);
}

Json AnswerOf(const PredictionQuestion& question, const std::vector<RolloutNode>& nodes,
              const std::string& current_revision) {
  Json answer = Json::object();
  if (!question.id.empty()) answer["id"] = question.id;
  if (!question.error.empty()) {
    answer["error"] = question.error;
    return answer;
  }
  if (nodes.empty()) {
    answer["error"] = "the Dataset is on no node yet";
    return answer;
  }
  if (question.tries > 0) answer["tries"] = question.tries;
  Json shares = Json::array();
  const std::string present_trial = PresentTrial(question, current_revision);
  std::set<coordination::Version> inputs;
  std::string present_error;
  for (const RolloutNode& node : nodes) {
    const TrialReport* const trial = TrialAt(node, question.trial);
    const TrialReport* const present = TrialAt(node, present_trial);
    if (trial != nullptr && !trial->error.empty()) {
      answer["error"] = fmt::format("node {} could not derive it: {}", node.name, trial->error);
      answer["revision"] = RevisionAskedBy(question);
      return answer;
    }
    if (trial == nullptr || present == nullptr) return answer;
    if (present_error.empty() && !present->error.empty())
      present_error = fmt::format("node {} could not derive it: {}", node.name, present->error);
    inputs.insert({trial->planned, present->planned});
    if (shares.size() == kMaxNodesListed) continue;
    shares.push_back({{"name", node.name},
                      {"storeBytes", trial->own.store_bytes},
                      {"movedBytes", trial->own.moved_bytes}});
  }
  if (inputs.size() > 1 && question.tries < kMaxTriesOfQuestion) {
    answer["tries"] = question.tries + 1;
    return answer;
  }
  answer["revision"] = RevisionAskedBy(question);
  if (inputs.size() > 1) {
    answer["error"] =
        "jobs or nodes come and go, so that nodes derive it from different inputs: ask again when "
        "they stay the same";
    return answer;
  }
  const TrialReport* const asked = coordination::NewestTrial(nodes, question.trial);
  const auto numbers = coordination::NumbersOf(asked->all);
  if (!numbers) {
    answer["error"] =
        "no job reads the Dataset and spec.jobs names none: there is nothing to predict";
    return answer;
  }
  answer.update(NumbersToJson(*numbers));
  answer["nodes"] = std::move(shares);
  const TrialReport* const current = coordination::NewestTrial(nodes, present_trial);
  const auto now = current != nullptr ? coordination::NumbersOf(current->all) : std::nullopt;
  if (!now) {
    if (!present_error.empty()) answer["currentError"] = present_error;
    return answer;
  }
  answer["current"] = NumbersToJson(*now);
  answer["worse"] = coordination::IsPredictedWorse(asked->all, current->all);
  return answer;
}

}  // namespace optcache::reconcile
