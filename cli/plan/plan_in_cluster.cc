// Has the subcommands that ask a cluster about a CachePlan: show, diff and predict.
//
// They ask through kubectl and print what the CachePlan and its revisions say (plan_resource.h);
// nothing is computed here. `cacheplan/NAME` names a CachePlan. Another word names a file if there
// is one of that name or if it looks like one, else a CachePlan.

#include "cli/plan/plan_in_cluster.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/files.h"
#include "cli/cluster/cluster_questions.h"
#include "cli/cluster/plan_questions.h"
#include "cli/plan/prediction.h"
#include "cli/plan/prediction_report.h"
#include "cli/rollout/revision_report.h"
#include "cli/rollout/rollout_progress.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/duration_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/stop_wait.h"
#include "cli/terminal/text_table.h"
#include "cli/terminal/value_text.h"

namespace optcache::cli {
namespace {

constexpr ByteCount kMaxInput = 1_MiB;  // of standard input: more than an API server takes

using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kDiffMore =
    R"(FROM and TO are each a number of `kubectl optcache rollout history`, a hash or its first digits, `current` (the revision
in force) or `update` (the one that the CachePlan asks for).

Examples:
  kubectl optcache plan diff current update imagenet
  kubectl optcache plan diff 3 4 imagenet -o json)";

constexpr const char* kPredictMore =
    R"(The nodes derive the plan beside the one that they follow, from the real samples, memory and jobs. Nothing changes.
The file is read as `kubectl apply` reads it. Only retention, objective and jobs matter. You need the right to patch the
CachePlan.

Examples:
  kubectl optcache plan predict -f plan.yaml
  kustomize build overlays/lab | kubectl optcache plan predict -f -
  kubectl optcache plan predict -f plan.yaml -o json --timeout 10m)";

struct DiffFlags : PlanInClusterFlags {
  std::string from;
  std::string to;
  std::vector<std::string> plan;
};

struct PredictFlags : PlanInClusterFlags {
  std::string file;
  std::string timeout = "2m";
};

Status DiffRevisions(const DiffFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  PlanResource plan;
  if (flags.plan.empty()) {
    ASSIGN_OR_RETURN(plan, AskForOnlyPlan(kubectl, flags.name_space));
  } else {
    ASSIGN_OR_RETURN(const std::string name, PlanNameOf(flags.plan));
    ASSIGN_OR_RETURN(plan, AskForPlan(kubectl, flags.name_space, name));
  }
  ASSIGN_OR_RETURN(const auto revisions, AskForRevisions(kubectl, plan));
  ASSIGN_OR_RETURN(const PlanRevision from, ChooseRevision(plan, revisions, flags.from));
  ASSIGN_OR_RETURN(const PlanRevision to, ChooseRevision(plan, revisions, flags.to));
  return PrintAs(flags.output, DiffAsTable(plan, from, to), DiffAsJson(plan, from, to));
}

Result<std::string> FreshId() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return Error(Code::kUnavailable, "the system has no random numbers");
  }
  return fmt::format("{:016x}", number);
}

// Like kubectl it waits for the end of what is typed, until ^C.
Result<std::string> ReadStandardInput() {
  auto text = ReadFile("/dev/stdin", kMaxInput);
  if (text) return text;
  return Error(text.error().code(), "--filename -: " + text.error().message());
}

Status PredictPlan(const PredictFlags& flags) {
  ASSIGN_OR_RETURN(const Duration timeout, ParseDuration(flags.timeout));
  if (timeout == Duration(0)) {
    return {Code::kInvalidArgument, "--timeout 0: set how long to wait, for example 10m"};
  }
  ASSIGN_OR_RETURN(const std::string id, FreshId());
  PredictionRequest request{
      .file = flags.file, .name_space = flags.name_space, .id = id, .timeout = timeout};
  if (request.file == "-") {
    ASSIGN_OR_RETURN(request.input, ReadStandardInput());
  }
  StopWait stop;
  ASSIGN_OR_RETURN(const AnsweredPrediction answer,
                   AskForPrediction(Kubectl(flags.kubectl), request,
                                    [&stop](Duration time) { return stop.For(time); }));
  return PrintAs(flags.output, PredictionAsTable(answer), PredictionAsJson(answer));
}

std::string Named(const std::vector<PlanRevision>& revisions, const std::string& name) {
  if (name.empty()) return "none yet";
  const PlanRevision* const revision = FindRevision(revisions, HashOfRevision(name));
  if (revision == nullptr) return name;
  return fmt::format("{}: {}, {}", DescribeRevision(revisions, revision->Hash()),
                     kube::TextAt(revision->content, "/retention"),
                     kube::TextAt(revision->content, "/objective"));
}

// Two figures that are of the same, side by side.
std::string FigureTable(const char* one, const PlanFigures& ones, const char* other,
                        const PlanFigures& others) {
  return FormatTable({{"AN EPOCH", one, other},
                      {"hit ratio", PercentText(ones.hit_ratio), PercentText(others.hit_ratio)},
                      {"store bytes", BytesText(ones.store_bytes), BytesText(others.store_bytes)},
                      {"moved bytes", BytesText(ones.moved_bytes), BytesText(others.moved_bytes)}});
}

Rows PassRows(const PlanResource& plan) {
  Rows rows = {{"JOB", "RANKS", "PASS", "READ", "RATE", "PLANNED"}};
  for (const PlanJob& job : plan.jobs) {
    const std::string share = ShareOfPass(job);
    rows.push_back({job.name, fmt::format("{}", job.ranks), fmt::format("{}", job.pass),
                    share.empty() ? fmt::format("{}", job.position) : share,
                    job.rate.empty() ? "-" : job.rate + "/s", job.planned ? "yes" : "no"});
  }
  return rows;
}

}  // namespace

void AddPlanInClusterFlags(CLI::App& command, PlanInClusterFlags& flags) {
  command.add_option("--namespace,-n", flags.name_space,
                     "Namespace of the CachePlan; default: that of kubectl's context");
  command.add_option("--output,-o", flags.output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  AddKubectlOptions(command, flags.kubectl);
}

bool MeansCachePlan(const std::string& word) {
  const std::size_t slash = word.find('/');
  if (slash != std::string::npos && PlanNameOf({word})) return true;
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored) || word.ends_with(".safetensors")) return false;
  return PlanNameOf({word}).has_value();
}

std::string CachePlanAsText(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  Rows rows = {{"Dataset:", plan.dataset},
               {"In force:", Named(revisions, plan.current)},
               {"Digest:", plan.digest.empty() ? "-" : plan.digest}};
  if (plan.update != plan.current) {
    rows.insert(rows.begin() + 2, {"Update:", Named(revisions, plan.update)});
    rows.push_back({"Rollout:", TellRollout(plan, revisions).line});
  }
  const std::string newest = HashOfRevision(plan.update);
  rows.push_back(
      {"Nodes:", fmt::format("{} of {} follow {}, {} have prepared it", plan.active, plan.desired,
                             newest.empty() ? "none" : newest, plan.prepared)});
  if (plan.degraded.status == kube::ConditionStatus::kTrue) {
    rows.push_back(
        {"Degraded:", fmt::format("{}: {}", plan.degraded.reason, plan.degraded.message)});
  }
  if (plan.observed_passes > 0) {
    rows.push_back(
        {"Observed:", fmt::format("{}{}", plan.observed_since,
                                  plan.observed_passes == 1
                                      ? ""
                                      : fmt::format(" and {} more", plan.observed_passes - 1))});
  }
  std::string text = fmt::format("CachePlan {}/{}\n", plan.name_space, plan.name) +
                     FormatTable(rows) + "\n" +
                     FigureTable("PREDICTED", plan.predicted, "OBSERVED", plan.observed);
  if (plan.current != plan.update && !plan.update_predicted.hit_ratio.empty()) {
    text += "\n" + FigureTable("PRESENT PREDICTED", plan.present_predicted, "UPDATE PREDICTED",
                               plan.update_predicted);
  }
  text += plan.jobs.empty() ? "\nNo training job reads.\n" : "\n" + FormatTable(PassRows(plan));
  return text;
}

Status ShowCachePlan(const std::string& name, const PlanInClusterFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  ASSIGN_OR_RETURN(const std::string plan_name, PlanNameOf({name}));
  ASSIGN_OR_RETURN(const PlanResource plan, AskForPlan(kubectl, flags.name_space, plan_name));
  ASSIGN_OR_RETURN(const auto revisions, AskForRevisions(kubectl, plan));
  return PrintAs(flags.output, CachePlanAsText(plan, revisions),
                 RolloutAsJson(plan, revisions, TellRollout(plan, revisions)));
}

void AddPlanDiff(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<DiffFlags>();
  CLI::App* const command =
      parent.add_subcommand("diff", "Compare two revisions of a CachePlan in a cluster");
  command->footer(kDiffMore);
  command->add_option("FROM", flags->from, "The first revision")->required();
  command->add_option("TO", flags->to, "The second revision")->required();
  command->add_option("NAME", flags->plan, "The CachePlan; default: the only one of the namespace")
      ->expected(0, 1);
  AddPlanInClusterFlags(*command, *flags);
  Choose(*command, flags, DiffRevisions, chosen);
}

void AddPlanPredict(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<PredictFlags>();
  CLI::App* const command = parent.add_subcommand(
      "predict", "Predict what a CachePlan would be worth in the cluster, before you apply it");
  command->footer(kPredictMore);
  command
      ->add_option("--filename,-f", flags->file,
                   "YAML or JSON with the CachePlan; -: standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--timeout", flags->timeout, "Time to wait, for example 90s or 10m")
      ->check(CLI::Validator(MustBeDuration, ""))
      ->capture_default_str();
  AddPlanInClusterFlags(*command, *flags);
  Choose(*command, flags, PredictPlan, chosen);
}

}  // namespace optcache::cli
