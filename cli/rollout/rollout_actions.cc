#include "cli/rollout/rollout_actions.h"

#include <fmt/format.h>

#include "cli/cluster/plan_questions.h"
#include "cli/rollout/revision_report.h"

namespace optcache::cli {
namespace {

using kube::Json;

Json RolloutPatch(const char* field, Json value) {
  return {{"spec", {{"rollout", {{field, std::move(value)}}}}}};
}

}  // namespace

Result<std::string> PauseRollout(const Kubectl& kubectl, const PlanResource& plan) {
  if (plan.paused) {
    return Error(Code::kInvalidArgument,
                 fmt::format("cacheplans.optcache.io \"{}\" is already paused", plan.name));
  }
  RETURN_IF_ERROR(PatchPlan(kubectl, plan, RolloutPatch("paused", true)));
  return plan.Reference() + " paused\n";
}

Result<std::string> ResumeRollout(const Kubectl& kubectl, const PlanResource& plan) {
  if (!plan.paused) {
    return Error(Code::kInvalidArgument,
                 fmt::format("cacheplans.optcache.io \"{}\" is not paused", plan.name));
  }
  RETURN_IF_ERROR(PatchPlan(kubectl, plan, RolloutPatch("paused", false)));
  return plan.Reference() + " resumed\n";
}

Result<std::string> UndoRollout(const Kubectl& kubectl, const PlanResource& plan,
                                std::uint64_t number) {
  ASSIGN_OR_RETURN(const auto revisions, AskForRevisions(kubectl, plan));
  ASSIGN_OR_RETURN(const PlanRevision revision, RevisionToUndo(plan, revisions, number));
  // To the revision in force nodes go back also while the rollout is paused.
  if (plan.paused && revision.name != plan.current) {
    return Error(
        Code::kInvalidArgument,
        fmt::format("you cannot rollback a paused cacheplan; resume it first with 'kubectl "
                    "optcache rollout resume {}' and try again",
                    plan.name));
  }
  if (revision.content == plan.content) {
    return fmt::format("{} skipped rollback (current template already matches revision {})\n",
                       plan.Reference(), revision.number);
  }
  Json patch = {{"spec", revision.content}};
  // The cause is the revision's: that of the change which is taken back is none of it.
  if (revision.change_cause != plan.change_cause) {
    patch["metadata"]["annotations"]["kubernetes.io/change-cause"] =
        revision.change_cause.empty() ? Json() : Json(revision.change_cause);
  }
  RETURN_IF_ERROR(PatchPlan(kubectl, plan, patch));
  return plan.Reference() + " rolled back\n";
}

Result<std::string> RestartRollout(const Kubectl& kubectl, const PlanResource& plan,
                                   const std::string& now) {
  if (plan.paused) {
    return Error(Code::kInvalidArgument,
                 fmt::format("can't restart paused cacheplan (run rollout resume first): kubectl "
                             "optcache rollout resume {}",
                             plan.name));
  }
  if (plan.restarted_at == now) {
    return Error(Code::kInvalidArgument,
                 "if restart has already been triggered within the past second, please wait before "
                 "attempting to trigger another");
  }
  // A new `restartedAt` begins nothing, or begins once more what goes back.
  if (plan.MayBeHeld() || plan.phase == "GoBack") {
    return Error(Code::kUnavailable,
                 fmt::format("a rollout of cacheplan \"{}\" is under way ({}): there is nothing to "
                             "restart. To see what it waits for, run: kubectl optcache rollout "
                             "status {}",
                             plan.name, plan.phase, plan.name));
  }
  RETURN_IF_ERROR(PatchPlan(kubectl, plan, RolloutPatch("restartedAt", now)));
  return plan.Reference() + " restarted\n";
}

}  // namespace optcache::cli
