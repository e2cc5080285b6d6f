// Has the subcommands of `rollout`: each asks for the CachePlan, lets another file decide, and
// prints.
//
// What a rollout says is in rollout_progress.h, how it is awaited in rollout_watch.h, what is
// written to the cluster in rollout_actions.h. Here are flags, help and exit statuses, which follow
// those of `kubectl rollout`.

#include "cli/rollout/rollout.h"

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/time_text.h"
#include "cli/cluster/cluster_questions.h"
#include "cli/cluster/plan_questions.h"
#include "cli/rollout/revision_report.h"
#include "cli/rollout/rollout_actions.h"
#include "cli/rollout/rollout_watch.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/duration_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/whole_number.h"

namespace optcache::cli {
namespace {

constexpr const char* kRolloutMore =
    R"(A change of a CachePlan's retention, objective or jobs is a revision. Nodes derive it beside the one in force and
switch to it, some at a time. Then whole epochs are observed. optcache takes a revision back that is worse than
predicted or worse than the one before. These commands do for CachePlans what `kubectl rollout` does for Deployments.
docs/user/rollout.md has the details.

Examples:
  Change a field and wait until the change is in force:
    kubectl patch cacheplan imagenet --type=merge -p '{"spec":{"retention":"Optimal"}}'
    kubectl optcache rollout status imagenet
  List the revisions and go back to one of them:
    kubectl optcache rollout history imagenet
    kubectl optcache rollout undo imagenet --to-revision 3)";

constexpr const char* kStatusMore =
    R"(Exits with 0 when the change is in force, or when `partition` keeps the other nodes back. Exits with 1 when the
change was stopped, when it is held because it is predicted to be worse, when it exceeded its progress deadline, when the
CachePlan is not in use, or when --timeout is over. Prints a line each time something changes. On a terminal it shows
one line and a bar instead.

Examples:
  kubectl optcache rollout status imagenet
  kubectl optcache rollout status cacheplan/imagenet -n vision --timeout 30m
  kubectl optcache rollout status imagenet --watch=false
  kubectl optcache rollout status imagenet -o json)";

constexpr const char* kHistoryMore =
    R"(STATE shows which revision is in force, which one is being rolled out and how far, and why one was stopped.
CHANGE-CAUSE is the annotation kubernetes.io/change-cause that the CachePlan had.

Examples:
  kubectl optcache rollout history imagenet
  kubectl optcache rollout history imagenet --revision 3
  kubectl annotate cacheplan imagenet kubernetes.io/change-cause="two jobs more")";

constexpr const char* kUndoMore =
    R"(Writes retention, objective and jobs of an earlier revision into the CachePlan and does not change spec.rollout.
Without --to-revision it takes the revision in force while a change is rolled out, held or stopped. Else it takes the
newest revision whose content differs from what the CachePlan asks for now.

Examples:
  kubectl optcache rollout undo imagenet
  kubectl optcache rollout undo imagenet --to-revision 3)";

struct RolloutFlags {
  std::vector<std::string> plan;
  std::string name_space;
  KubectlOptions kubectl;
  std::string output = "text";
  bool watch = true;
  std::string timeout = "0";
  std::uint64_t revision = 0;  // 0: none was given
};

Result<PlanResource> AskForPlan(const Kubectl& kubectl, const RolloutFlags& flags) {
  ASSIGN_OR_RETURN(const std::string name, PlanNameOf(flags.plan));
  return AskForPlan(kubectl, flags.name_space, name);
}

Status RolloutStatus(const RolloutFlags& flags) {
  ASSIGN_OR_RETURN(const std::string name, PlanNameOf(flags.plan));
  ASSIGN_OR_RETURN(const Duration timeout, ParseDuration(flags.timeout));
  ASSIGN_OR_RETURN(const WatchedRollout rollout, WatchRollout(Kubectl(flags.kubectl),
                                                              {.name_space = flags.name_space,
                                                               .name = name,
                                                               .until_over = flags.watch,
                                                               .revision = flags.revision,
                                                               .timeout = timeout,
                                                               .quiet = flags.output != "text"},
                                                              STDOUT_FILENO));
  RETURN_IF_ERROR(
      PrintAs(flags.output, "", RolloutAsJson(rollout.plan, rollout.revisions, rollout.progress)));
  if (rollout.progress.outcome != RolloutOutcome::kFailed) return OkStatus();
  const std::string advice = rollout.progress.advice.empty() ? "" : "\n" + rollout.progress.advice;
  return {Code::kUnavailable, rollout.progress.line + advice};
}

Status RolloutHistory(const RolloutFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  ASSIGN_OR_RETURN(const PlanResource plan, AskForPlan(kubectl, flags));
  ASSIGN_OR_RETURN(const auto revisions, AskForRevisions(kubectl, plan));
  if (flags.revision == 0)
    return PrintAs(flags.output, HistoryAsTable(plan, revisions), HistoryAsJson(plan, revisions));
  ASSIGN_OR_RETURN(const PlanRevision revision,
                   ChooseRevision(plan, revisions, fmt::format("{}", flags.revision)));
  return PrintAs(flags.output, RevisionAsText(plan, revision), RevisionAsJson(plan, revision));
}

Status RolloutPause(const RolloutFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  ASSIGN_OR_RETURN(const PlanResource plan, AskForPlan(kubectl, flags));
  ASSIGN_OR_RETURN(const std::string line, PauseRollout(kubectl, plan));
  return Print(line);
}

Status RolloutResume(const RolloutFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  ASSIGN_OR_RETURN(const PlanResource plan, AskForPlan(kubectl, flags));
  ASSIGN_OR_RETURN(const std::string line, ResumeRollout(kubectl, plan));
  return Print(line);
}

Status RolloutUndo(const RolloutFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  ASSIGN_OR_RETURN(const PlanResource plan, AskForPlan(kubectl, flags));
  ASSIGN_OR_RETURN(const std::string line, UndoRollout(kubectl, plan, flags.revision));
  return Print(line);
}

Status RolloutRestart(const RolloutFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  ASSIGN_OR_RETURN(const PlanResource plan, AskForPlan(kubectl, flags));
  ASSIGN_OR_RETURN(const std::string line,
                   RestartRollout(kubectl, plan, FormatTime(SystemClock().UnixSeconds())));
  return Print(line);
}

struct Subcommand {
  const char* name;
  const char* does;
  Status (*action)(const RolloutFlags& flags);
  const char* more;
};

CLI::App* AddSubcommand(CLI::App& parent, const Subcommand& subcommand,
                        const std::shared_ptr<RolloutFlags>& flags, Action& chosen) {
  CLI::App* const command = parent.add_subcommand(subcommand.name, subcommand.does);
  command->footer(subcommand.more);
  command->add_option("NAME", flags->plan, "The CachePlan: NAME, cacheplan/NAME or cacheplan NAME")
      ->required()
      ->expected(1, 2);
  command->add_option("--namespace,-n", flags->name_space,
                      "Namespace of the CachePlan; default: that of kubectl's context");
  AddKubectlOptions(*command, flags->kubectl);
  Choose(*command, flags, subcommand.action, chosen);
  return command;
}

void AddOutput(CLI::App& command, RolloutFlags& flags) {
  command.add_option("--output,-o", flags.output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
}

void AddRevision(CLI::App& command, const char* option, RolloutFlags& flags, const char* means) {
  command.add_option(option, flags.revision, means)
      ->check(WholeNumber<std::uint64_t>(0, std::uint64_t{INT64_MAX}));
}

void AddStatus(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<RolloutFlags>();
  CLI::App* const command = AddSubcommand(
      parent, {"status", "Wait until a change is in force", RolloutStatus, kStatusMore}, flags,
      chosen);
  command->add_flag(
      "--watch,-w,!--no-watch", flags->watch,
      "Wait until the rollout is over (the default); --watch=false prints its status once");
  command
      ->add_option("--timeout", flags->timeout, "Time to wait, for example 90s or 30m; 0: no limit")
      ->check(CLI::Validator(MustBeDuration, ""))
      ->capture_default_str();
  AddRevision(*command, "--revision", *flags,
              "Fail when another revision than this becomes the newest; 0: follow the newest");
  AddOutput(*command, *flags);
}

void AddHistory(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<RolloutFlags>();
  CLI::App* const command = AddSubcommand(
      parent, {"history", "List the revisions that are kept", RolloutHistory, kHistoryMore}, flags,
      chosen);
  AddRevision(*command, "--revision", *flags, "Show what this revision asks for");
  AddOutput(*command, *flags);
}

void AddUndo(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<RolloutFlags>();
  CLI::App* const command = AddSubcommand(
      parent, {"undo", "Go back to an earlier revision", RolloutUndo, kUndoMore}, flags, chosen);
  AddRevision(*command, "--to-revision", *flags,
              "The revision to go back to; 0: the one before (the default)");
}

}  // namespace

void AddRolloutCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command =
      app.add_subcommand("rollout", "Follow and steer a change of a CachePlan in a cluster");
  command->footer(kRolloutMore);
  command->require_subcommand(1);
  AddStatus(*command, chosen);
  AddHistory(*command, chosen);
  constexpr Subcommand kSteer[] = {
      {"pause", "Hold a rollout: no further node switches, and no phase ends, until `resume`",
       RolloutPause, "Example:\n  kubectl optcache rollout pause imagenet"},
      {"resume", "Resume a paused rollout", RolloutResume,
       "Example:\n  kubectl optcache rollout resume imagenet"},
      {"restart", "Try a stopped rollout again; if it is complete, derive its plan again",
       RolloutRestart, "Example:\n  kubectl optcache rollout restart imagenet"}};
  for (const Subcommand& subcommand : kSteer)
    AddSubcommand(*command, subcommand, std::make_shared<RolloutFlags>(), chosen);
  AddUndo(*command, chosen);
}

}  // namespace optcache::cli
