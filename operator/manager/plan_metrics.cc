// Turns statuses of CachePlans, and what the coordinator knows of their jobs, into metrics.
//
// What a status says is read from the informer's copy; nothing is counted or kept here. The number
// of series is bounded: Datasets by kMaxDatasetsShown, jobs of each by kMaxJobsShown.

#include "operator/manager/plan_metrics.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "coordination/revisions.h"
#include "coordinator/rollout.h"
#include "kube/conditions.h"
#include "operator/manager/condition_metrics.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/dataset/plan_choice.h"

namespace optcache::manager {
namespace {

using kube::Json;

constexpr std::size_t kMaxJobsShown = 256;

// As labels have it: go_back.
std::string SnakeCase(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    const bool upper = letter >= 'A' && letter <= 'Z';
    if (upper && !text.empty()) text += '_';
    text += upper ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return text;
}

// Of a rollout that waits for the end of an epoch.
void VisitEpochWait(const std::string& dataset, const Json& plan, const CounterVisitor& visitor) {
  const auto since = ParseTime(kube::TextAt(plan, "/status/rollout/epochTime"));
  if (!since) return;
  const std::int64_t deadline = kube::NumberAt(plan, "/spec/rollout/epochDeadlineSeconds")
                                    .value_or(coordination::RolloutKnobs().epoch_deadline_seconds);
  visitor(MetricKind::kGauge, "optcache_plan_epoch_wait_start_timestamp_seconds",
          {{"dataset", dataset}}, *since);
  visitor(MetricKind::kGauge, "optcache_plan_epoch_deadline_seconds", {{"dataset", dataset}},
          static_cast<double>(deadline));
}

void VisitView(const std::string& dataset, const reconcile::PlanView& view,
               const CounterVisitor& visitor) {
  for (const auto& [state, nodes] :
       {std::pair("drifted", &view.drifted), std::pair("missing", &view.missing)}) {
    visitor(MetricKind::kGauge, "optcache_plan_rollout_nodes",
            {{"dataset", dataset}, {"state", state}}, static_cast<double>(nodes->size()));
  }
  visitor(MetricKind::kGauge, "optcache_plan_digests_differ", {{"dataset", dataset}},
          view.nodes_that_differ.empty() ? 0 : 1);
}

// By namespace, job and loader, as the labels of the job's sidecars have them. Streams that these
// do not tell apart, of a job that was there before or of groups of workers, are one: the one that
// is least far.
void VisitJobs(const std::string& dataset, const reconcile::PlanView& view,
               const CounterVisitor& visitor) {
  using Progress = std::pair<std::uint64_t, std::optional<double>>;  // pass, share of it
  std::map<std::tuple<std::string, std::string, std::string>, Progress> jobs;
  for (std::size_t i = 0; i < std::min(view.jobs.size(), kMaxJobsShown); ++i) {
    const reconcile::PlanJob& job = view.jobs[i];
    const coordination::StreamNameParts parts = coordination::PartsOf(job.name);
    Progress progress{job.pass, std::nullopt};
    if (job.length > 0) {
      progress.second =
          std::min(static_cast<double>(job.position) / static_cast<double>(job.length), 1.0);
    }
    const auto [known, is_new] =
        jobs.try_emplace({std::string(parts.name_space), std::string(coordination::JobOf(job.name)),
                          std::string(parts.loader)},
                         progress);
    if (!is_new) known->second = std::min(known->second, progress);
  }
  for (const auto& [name, progress] : jobs) {
    const auto& [name_space, job, loader] = name;
    const MetricLabels labels = {
        {"namespace", name_space}, {"training_job", job}, {"dataset", dataset}, {"loader", loader}};
    visitor(MetricKind::kGauge, "optcache_job_pass", labels, static_cast<double>(progress.first));
    if (progress.second)
      visitor(MetricKind::kGauge, "optcache_job_progress_ratio", labels, *progress.second);
  }
}

}  // namespace

void VisitPlanStatus(const std::string& dataset, const Json& plan, const CounterVisitor& visitor) {
  for (const char* state : {"desired", "prepared", "active"}) {
    if (const auto nodes = kube::NumberAt(plan, std::string("/status/nodes/") + state)) {
      visitor(MetricKind::kGauge, "optcache_plan_rollout_nodes",
              {{"dataset", dataset}, {"state", state}}, static_cast<double>(*nodes));
    }
  }
  const std::string present = kube::TextAt(plan, "/status/rollout/phase");
  using enum coordination::RolloutPhase;
  for (const auto phase : {kPrepare, kActivate, kObserve, kGoBack, kComplete, kStopped}) {
    if (present.empty()) break;
    const std::string name(coordination::PhaseName(phase));
    visitor(MetricKind::kGauge, "optcache_plan_rollout_phase",
            {{"dataset", dataset}, {"phase", SnakeCase(name)}}, present == name ? 1 : 0);
  }
  if (const auto progress = kube::ConditionOf(plan, "Progressing"); !progress.reason.empty()) {
    visitor(MetricKind::kGauge, "optcache_plan_rollout_reason",
            {{"dataset", dataset}, {"reason", SnakeCase(progress.reason)}}, 1);
    if (progress.reason == "EpochAwaited" || progress.reason == "Observing")
      VisitEpochWait(dataset, plan, visitor);
  }
  for (const char* kind : {"predicted", "observed"}) {
    const Json& numbers = kube::Find(plan, std::string("/status/") + kind);
    if (const std::string ratio = kube::TextAt(numbers, "/hitRatio"); !ratio.empty()) {
      visitor(MetricKind::kGauge, "optcache_plan_pass_hit_ratio",
              {{"dataset", dataset}, {"kind", kind}}, std::strtod(ratio.c_str(), nullptr));
    }
    for (const auto& [field, metric] :
         {std::pair("/storeBytesPerEpoch", "optcache_plan_pass_store_bytes"),
          std::pair("/movedBytesPerEpoch", "optcache_plan_pass_moved_bytes")}) {
      if (const auto bytes = kube::NumberAt(numbers, field)) {
        visitor(MetricKind::kGauge, metric, {{"dataset", dataset}, {"kind", kind}},
                static_cast<double>(*bytes));
      }
    }
  }
}

void VisitPlans(const kube::ObjectCache& datasets, const kube::ObjectCache& plans,
                const ClusterSync& cluster, const CounterVisitor& visitor) {
  std::size_t shown = 0;
  for (const auto& object : datasets.List()) {
    if (++shown > kMaxDatasetsShown) return;
    const kube::ObjectKey key = kube::KeyOf(*object);
    const std::string dataset = key.ToString();
    const auto known = reconcile::PlansOf(key, kube::UidOf(*object), plans);
    const reconcile::PlanChoice choice = reconcile::ChoosePlan(known);
    if (choice.chosen == nullptr) continue;
    const auto plan = plans.Find({.ns = key.ns, .name = choice.chosen->name});
    if (plan == nullptr) continue;
    VisitConditions("optcache_plan_condition", dataset, *plan, visitor);
    VisitPlanStatus(dataset, *plan, visitor);
    if (const auto view = cluster.PlanViewOf(dataset)) {
      VisitView(dataset, *view, visitor);
      VisitJobs(dataset, *view, visitor);
    }
  }
}

}  // namespace optcache::manager
