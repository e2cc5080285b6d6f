#include "cli/cluster/plan_questions.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "cli/cluster/cluster_questions.h"

namespace optcache::cli {
namespace {

using kube::Json;

constexpr const char* kPlans = "cacheplans.optcache.io";
constexpr std::size_t kMaxName = 253;
constexpr std::array<std::string_view, 5> kKinds = {
    "cacheplan", "cacheplans", "ocplan", "cacheplan.optcache.io", "cacheplans.optcache.io"};

std::vector<std::string> Get(const std::string& what, const std::string& name_space) {
  std::vector<std::string> arguments = {"get", what, "--output=json"};
  if (!name_space.empty()) arguments.push_back("--namespace=" + name_space);
  return arguments;
}

// Another plan that a Dataset of that name follows; empty: there is none.
std::string PlanOfDataset(const Json& list, const std::string& dataset) {
  std::string found;
  for (const Json& item : kube::Items(list, "/items")) {
    if (kube::TextAt(item, "/spec/dataset") != dataset) continue;
    const bool in_use = kube::ConditionOf(item, "Available").status == kube::ConditionStatus::kTrue;
    if (found.empty() || in_use) found = kube::KeyOf(item).name;
  }
  return found;
}

}  // namespace

bool IsObjectName(std::string_view name) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, is_inner) &&
         std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
         std::isalnum(static_cast<unsigned char>(name.back())) != 0;
}

Result<std::string> PlanNameOf(const std::vector<std::string>& words) {
  std::string kind = "cacheplan";
  std::string name;
  if (words.size() == 1) {
    const std::size_t slash = words[0].find('/');
    if (slash != std::string::npos) kind = words[0].substr(0, slash);
    name = words[0].substr(slash == std::string::npos ? 0 : slash + 1);
  } else if (words.size() == 2) {
    kind = words[0];
    name = words[1];
  }
  if (std::ranges::find(kKinds, kind) == kKinds.end()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("'{0}' is not a CachePlan: write cacheplan/NAME or NAME; for other "
                             "kinds use `kubectl rollout`",
                             kind));
  }
  if (!IsObjectName(name)) {
    return Error(Code::kInvalidArgument,
                 fmt::format("'{}' is not a name of a CachePlan: it takes a-z, 0-9, - and dots, at "
                             "most {} characters",
                             name, kMaxName));
  }
  return name;
}

Result<PlanResource> AskForPlan(const Kubectl& kubectl, const std::string& name_space,
                                const std::string& name) {
  // One word, so that no name can be an option of kubectl.
  const Result<std::string> json = kubectl.Run(Get(fmt::format("{}/{}", kPlans, name), name_space));
  if (json) return ReadPlanResource(*json);
  if (json.error().code() != Code::kNotFound) return std::unexpected(ExplainMissing(json.error()));
  const Result<std::string> all = kubectl.Run(Get(kPlans, name_space));
  const std::string other =
      all ? PlanOfDataset(Json::parse(*all, nullptr, /*allow_exceptions=*/false), name) : "";
  if (other.empty()) return std::unexpected(json.error());
  return Error(Code::kNotFound,
               fmt::format("there is no CachePlan {0}, but Dataset {0} follows cacheplan/{1}: use "
                           "{1} instead",
                           name, other));
}

Result<PlanResource> AskForOnlyPlan(const Kubectl& kubectl, const std::string& name_space) {
  const Result<std::string> text = kubectl.Run(Get(kPlans, name_space));
  if (!text) return std::unexpected(ExplainMissing(text.error()));
  ASSIGN_OR_RETURN(const Json list, kube::ParseList(*text, "CachePlans"));
  const Json& items = kube::Items(list, "/items");
  if (items.empty()) return Error(Code::kNotFound, "there is no CachePlan in this namespace");
  if (items.size() == 1) {
    return PlanResourceOf(items[0]);
  }
  std::vector<std::string> names;
  for (const Json& item : items)
    names.push_back(kube::KeyOf(item).name);
  return Error(
      Code::kInvalidArgument,
      fmt::format("this namespace has several CachePlans: name one of {}", fmt::join(names, ", ")));
}

Result<std::vector<PlanRevision>> AskForRevisions(const Kubectl& kubectl,
                                                  const PlanResource& plan) {
  std::vector<std::string> arguments = Get("controllerrevisions.apps", plan.name_space);
  arguments.push_back("--selector=optcache.io/cacheplan=" + plan.name);
  ASSIGN_OR_RETURN(const std::string json, kubectl.Run(arguments));
  return ReadPlanRevisions(json);
}

Status PatchPlan(const Kubectl& kubectl, const PlanResource& plan, const Json& patch) {
  const auto answer =
      kubectl.Run({"patch", fmt::format("{}/{}", kPlans, plan.name),
                   "--namespace=" + plan.name_space, "--type=merge", "--patch=" + patch.dump()});
  return answer ? OkStatus() : answer.error();
}

}  // namespace optcache::cli
