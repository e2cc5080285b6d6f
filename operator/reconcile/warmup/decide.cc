// Moves one Warmup through its stages, from what was observed and its own status.
//
//   Advance ─┬─ Obstacle, or the placement is not settled ─► waits
//            ├─ no Job ─► Begin: creates it ─► Follow ─► End ─► complete or failed ─► Outlive
//            └─ another manifest or spec ─► the Job of before is removed, and it begins again
//
// The Job's name follows from the manifest and the spec, so a decision that is made twice creates
// one Job. A Job is made for the machines of its time: if the Dataset leaves one of them for good,
// the Job is replaced, since its pod would wait for ever. Draft collects the decision; Say sets the
// two conditions together, so they never contradict.

#include "operator/reconcile/warmup/decide.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "api/dataset.h"
#include "api/warmup.h"
#include "base/check.h"
#include "base/time_text.h"
#include "coordination/stream_recipe.h"
#include "kube/conditions.h"
#include "operator/api/job_recipes.h"
#include "operator/api/resources.h"
#include "operator/api/warmup_status.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/dataset/plan_choice.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/warmup/warm_job.h"
#include "sampler/recipe_text.h"

namespace optcache::reconcile {
namespace {

using kube::ConditionStatus;
using kube::Json;

constexpr Duration kLookWhileItRuns = std::chrono::seconds(3);  // while it runs
constexpr Duration kLookWhileItWaits = std::chrono::seconds(15);
// Nodes that come one by one, or Datasets that are made together, move it until then.
constexpr Duration kPlacementIsSettledAfter = std::chrono::seconds(5);
// Nodes that start again come back before that.
constexpr double kMachinesStaySeconds = 60;
// A Job gets its pods at once, unless something forbids it.
constexpr double kWarmPodIsMadeWithinSeconds = 30;
// Jobs and pods are followed apart: the end of a Job may be seen before that of its pods.
constexpr double kPodsAreSeenWithinSeconds = 20;

// How it stands with a Warmup.
enum class Stage { kWaits, kRuns, kComplete, kFailed };

// A decision under way.
struct Draft {
  const WarmupObserved& observed;
  api::WarmupStatus status;
  Decision decision;

  void Remove(const IndexJob& job);
  // The two conditions; the first time that it ends is told as an Event.
  void Say(Stage stage, const std::string& reason, const std::string& message);
};

void Draft::Remove(const IndexJob& job) {
  decision.deletes.push_back({.resource = kube::kJobs,
                              .key = {.ns = kube::KeyOf(observed.warmup).ns, .name = job.name},
                              .uid = job.uid});
}

void Draft::Say(Stage stage, const std::string& reason, const std::string& message) {
  DCHECK(IsKnownReason(reason));
  const bool complete = stage == Stage::kComplete;
  const bool failed = stage == Stage::kFailed;
  const kube::Condition before =
      kube::ConditionOf(observed.warmup, complete ? "Complete" : "Failed");
  const bool told = before.status == ConditionStatus::kTrue && before.reason == reason;
  if ((complete || failed) && !told) {
    decision.events.push_back(
        {.type = failed ? kube::EventType::kWarning : kube::EventType::kNormal,
         .reason = reason,
         .action = "Warm",
         .note = message});
  }
  const auto set = [&](const char* type, bool value, const std::string& why,
                       const std::string& text) {
    kube::SetCondition(status.conditions,
                       {.type = type,
                        .status = value ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                        .reason = why,
                        .message = text,
                        .observed_generation = status.observed_generation},
                       observed.now);
  };
  set("Complete", complete, reason, message);
  if (failed) return set("Failed", true, reason, message);
  set("Failed", false, "AsWanted", "nothing keeps it from going on");
}

bool HasEnded(const api::WarmupStatus& status) {
  return !status.completion_time.empty();
}

// The order of the first job that the CachePlan names, over this many samples; empty: none.
std::string OrderOf(const api::CachePlanSpec& plan, std::uint64_t samples) {
  if (plan.jobs.empty()) return "";
  coordination::Recipe recipe = api::RecipesOf({plan.jobs.front()}).front().recipe;
  recipe.size = samples;
  const auto made = coordination::SamplerRecipe(recipe);
  return made ? sampler::FormatRecipe(*made) : "";
}

std::vector<api::NodeBytes> NodesFor(const CacheView& cache) {
  std::vector<api::NodeBytes> nodes = cache.placed;
  if (nodes.size() > kMaxWarmNodes) nodes.resize(kMaxWarmNodes);
  return nodes;
}

ByteCount RoomOn(const std::vector<api::NodeBytes>& nodes) {
  ByteCount room = 0;
  for (const api::NodeBytes& node : nodes)
    room += node.bytes;
  return room;
}

// What there is to wait for before it can begin; empty: nothing.
std::pair<std::string, std::string> Obstacle(const WarmupObserved& observed,
                                             const api::WarmupSpec& spec) {
  if (observed.dataset.is_null()) {
    return {"NoDataset", fmt::format("there is no Dataset {} in this namespace", spec.dataset)};
  }
  if (kube::TextAt(observed.dataset, "/status/manifestDigest").empty()) {
    const std::string why = kube::ConditionOf(observed.dataset, "Indexed").message;
    return {"NotIndexed", fmt::format("Dataset {} is not indexed yet{}{}", spec.dataset,
                                      why.empty() ? "" : ": ", why)};
  }
  if (!observed.placed || !observed.cache) {
    return {"Waiting", "where the Dataset is placed is not known yet"};
  }
  if (observed.placed->members.empty() || observed.cache->placed.empty())
    return {"NotPlaced", fmt::format("Dataset {} is on no node yet", spec.dataset)};
  if (observed.placed->granted == 0)
    return {"NoMemory", fmt::format("nodes have no room for Dataset {}", spec.dataset)};
  return {};
}

// How long its nodes must stay the same before it begins.
std::optional<Duration> UntilSettled(const WarmupObserved& observed) {
  if (observed.placed_for >= kPlacementIsSettledAfter) return std::nullopt;
  return kPlacementIsSettledAfter - observed.placed_for;
}

void TakeNumbers(const WarmupObserved& observed, api::WarmupStatus& status) {
  const api::DatasetStatus dataset = api::ParseDatasetStatus(observed.dataset);
  if (!observed.placed || !observed.cache) return;
  if (observed.cache->manifest_digest != status.manifest_digest) return;
  status.total_bytes = std::min(observed.placed->granted, dataset.bytes);
  status.bytes = std::min(observed.cache->cached_bytes, status.total_bytes);
  status.samples = observed.cache->cached_samples;
  if (status.total_bytes == 0) return;
  const double share = static_cast<double>(status.bytes) / static_cast<double>(status.total_bytes);
  // 100 % is said when it has ended.
  status.progress = std::min<std::int64_t>(static_cast<std::int64_t>(std::floor(share * 100)), 99);
}

void Begin(const api::WarmupSpec& spec, const ReconcileSettings& settings, Draft& draft) {
  const WarmupObserved& observed = draft.observed;
  const Result<api::DatasetSpec> source = api::ParseDatasetSpec(observed.dataset);
  if (!source) {
    return draft.Say(
        Stage::kWaits, "NotIndexed",
        fmt::format("Dataset {} cannot be read: {}", spec.dataset, source.error().message()));
  }
  const api::DatasetStatus dataset = api::ParseDatasetStatus(observed.dataset);
  const WarmTarget target{.manifest_digest = dataset.manifest_digest,
                          .samples = dataset.samples,
                          .largest_sample = dataset.largest_sample,
                          .order = OrderOf(observed.plan, dataset.samples),
                          .nodes = NodesFor(*observed.cache)};
  // One that is there already goes on, also if nodes or room are others by now.
  draft.decision.applies.push_back(
      {.resource = kube::kJobs,
       .object = BuildWarmJob(observed.warmup, spec, *source, target, settings),
       .create_only = true});
  draft.status.start_time = FormatTime(observed.now);
  draft.Say(Stage::kRuns, "Warming",
            fmt::format("{} {} of {} at the most are read into {} {}", spec.dataset,
                        FormatBytes(std::min(RoomOn(target.nodes), dataset.bytes)),
                        FormatBytes(dataset.bytes), target.nodes.size(),
                        target.nodes.size() == 1 ? "node" : "nodes"));
  draft.decision.requeue_after = kLookWhileItRuns;
}

// The sum of what a Job's pods have said, and of how many machines.
struct WarmSum {
  WarmResult result;
  std::int64_t machines = 0;
};

// Nothing while some pods have not been seen. A pod that was tried again may have come to the
// machine of another one: what it says of it counts once.
std::optional<WarmSum> ResultOf(const IndexJob& job) {
  WarmSum sum;
  std::int64_t ended = 0;
  std::map<std::string, WarmResult> by_machine;
  for (const std::string& words : job.results) {
    std::optional<WarmResult> result = ParseWarmResult(words);
    if (!result) continue;
    if (!result->message.empty()) {
      sum.result.message = result->message;  // the newest counts
      continue;
    }
    ++ended;
    std::string at = result->at.empty() ? fmt::format("#{}", ended) : result->at;
    by_machine.insert_or_assign(std::move(at), *std::move(result));
  }
  if (job.state == JobState::kSucceeded && ended < job.completions) return std::nullopt;
  for (const auto& [machine, result] : by_machine) {
    ++sum.machines;
    sum.result.samples += result.samples;
    sum.result.bytes += result.bytes;
    sum.result.no_room += result.no_room;
    sum.result.failed += result.failed;
    if (sum.result.first_failure.empty()) sum.result.first_failure = result.first_failure;
  }
  return sum;
}

// Of one that has succeeded.
std::string WarmedText(const api::WarmupStatus& status, const IndexJob& job,
                       const std::optional<WarmSum>& sum) {
  std::string text =
      fmt::format("{} samples, {}, lie at nodes", status.samples, FormatBytes(status.bytes));
  if (!sum) return text;
  if (sum->result.no_room > 0)
    text += fmt::format("; they have no room for {} more", sum->result.no_room);
  if (sum->result.failed > 0)
    text += fmt::format(
        "; {} could not be read{}{}", sum->result.failed,
        sum->result.first_failure.empty() ? "" : ", first: ", sum->result.first_failure);
  if (sum->machines < job.completions)
    text += fmt::format("; {} of {} nodes were filled", sum->machines, job.completions);
  return text;
}

void End(const IndexJob& job, Draft& draft) {
  api::WarmupStatus& status = draft.status;
  const std::optional<WarmSum> sum = ResultOf(job);
  const bool succeeded = job.state == JobState::kSucceeded;
  const double since = draft.observed.now - job.finished_at;
  if (!sum && since < kPodsAreSeenWithinSeconds) {
    draft.Say(Stage::kRuns, "Warming", "Job " + job.name + " has ended: what it said is awaited");
    draft.decision.requeue_after = kLookWhileItRuns;
    return;
  }
  status.completion_time = FormatTime(job.finished_at > 0 ? job.finished_at : draft.observed.now);
  if (!succeeded) {
    std::string why = sum ? sum->result.message : "";
    if (why.empty()) why = job.trouble.empty() ? "it has failed without a word" : job.trouble;
    return draft.Say(Stage::kFailed, "WarmupFailed", why);
  }
  if (sum && sum->result.samples == 0 && sum->result.no_room > 0) {
    return draft.Say(Stage::kFailed, "NothingKept",
                     "nodes keep nothing of it: they have no room, or it has been placed on others "
                     "meanwhile");
  }
  status.progress = 100;
  if (sum) {
    status.samples = sum->result.samples;
    status.bytes = sum->result.bytes;
  }
  draft.Say(Stage::kComplete, "Warmed", WarmedText(status, job, sum));
}

// A machine of a running Job that the Dataset has left for good: it is gone, or replaced, and a pod
// would wait for it for ever. Empty: none.
std::string MachineThatIsGone(const IndexJob& job, const WarmupObserved& observed) {
  if (observed.now - job.created_at < kMachinesStaySeconds || UntilSettled(observed)) return "";
  for (const std::string& machine : job.machines) {
    const auto placed = std::ranges::find(observed.cache->placed, machine, &api::NodeBytes::name);
    if (placed == observed.cache->placed.end()) return machine;
  }
  return "";
}

void Follow(const IndexJob& job, Draft& draft) {
  draft.decision.requeue_after = kLookWhileItRuns;
  const bool foreign = job.owner_uid != kube::UidOf(draft.observed.warmup);
  if (foreign || job.deleting) {
    return draft.Say(Stage::kWaits, "Waiting", "Job " + job.name + " of before is being removed");
  }
  if (job.state != JobState::kRunning) {
    draft.decision.requeue_after.reset();
    return End(job, draft);
  }
  if (const std::string gone = MachineThatIsGone(job, draft.observed); !gone.empty()) {
    draft.Remove(job);
    return draft.Say(Stage::kRuns, "Warming",
                     fmt::format("Job {} is replaced: {} holds nothing of the Dataset any more",
                                 job.name, gone));
  }
  const bool late = draft.observed.now - job.created_at > kWarmPodIsMadeWithinSeconds;
  if (!job.trouble.empty()) {
    return draft.Say(Stage::kRuns, "JobPending",
                     "Job " + job.name + " does not run: " + job.trouble);
  }
  if (!job.has_pod && late && job.created_at > 0) {
    return draft.Say(Stage::kRuns, "JobPending",
                     "Job " + job.name + " gets no pod, as a quota or a policy may forbid it: " +
                         "kubectl describe job " + job.name + " says why");
  }
  draft.Say(Stage::kRuns, "Warming",
            fmt::format("Job {}: {} of {} lie at nodes", job.name, FormatBytes(draft.status.bytes),
                        FormatBytes(draft.status.total_bytes)));
}

// Jobs of another list of samples, or of an earlier spec.
void RemoveOutdated(const std::string& wanted, Draft& draft) {
  const std::string uid = kube::UidOf(draft.observed.warmup);
  for (const IndexJob& job : draft.observed.jobs) {
    const bool outdated =
        job.name != wanted && job.owner_uid == uid && job.state == JobState::kRunning;
    if (!outdated || job.deleting) continue;
    draft.Remove(job);
  }
}

void Forget(api::WarmupStatus& status, const std::string& digest) {
  status.manifest_digest = digest;
  status.progress = 0;
  status.samples = 0;
  status.bytes = 0;
  status.total_bytes = 0;
  status.start_time.clear();
  status.completion_time.clear();
}

void Advance(const api::WarmupSpec& spec, const ReconcileSettings& settings, Draft& draft) {
  const WarmupObserved& observed = draft.observed;
  draft.decision.requeue_after = kLookWhileItWaits;
  if (auto [reason, message] = Obstacle(observed, spec); !reason.empty())
    return draft.Say(Stage::kWaits, reason, message);
  const std::string digest = kube::TextAt(observed.dataset, "/status/manifestDigest");
  if (draft.status.manifest_digest != digest) Forget(draft.status, digest);
  const std::string wanted =
      WarmJobName(kube::KeyOf(observed.warmup).name, spec, draft.status.manifest_digest);
  RemoveOutdated(wanted, draft);
  TakeNumbers(observed, draft.status);
  if (observed.plan.retention == coordination::Retention::kNone) {
    draft.status.completion_time = FormatTime(observed.now);
    return draft.Say(Stage::kFailed, "NothingKept",
                     "the CachePlan's retention is None: nodes keep nothing");
  }
  const auto job = std::ranges::find(observed.jobs, wanted, &IndexJob::name);
  if (job == observed.jobs.end()) {
    const std::optional<Duration> wait = UntilSettled(observed);
    if (!wait) return Begin(spec, settings, draft);
    draft.decision.requeue_after = wait;
    return draft.Say(Stage::kWaits, "Waiting",
                     fmt::format("Dataset {} has just been placed: begins if its nodes stay the "
                                 "same for a few seconds",
                                 spec.dataset));
  }
  Follow(*job, draft);
}

// Of one that has ended: its time to live.
void Outlive(const api::WarmupSpec& spec, Draft& draft) {
  if (!spec.ttl_seconds) return;
  const double ended = ParseTime(draft.status.completion_time).value_or(draft.observed.now);
  const double left = ended + static_cast<double>(*spec.ttl_seconds) - draft.observed.now;
  if (left > 0) {
    draft.decision.requeue_after = FromSeconds(left + 1);
    return;
  }
  draft.decision.deletes.push_back({.resource = api::kWarmups,
                                    .key = kube::KeyOf(draft.observed.warmup),
                                    .uid = kube::UidOf(draft.observed.warmup)});
}

bool IsOver(const WarmupObserved& observed, const api::WarmupSpec& spec,
            const api::WarmupStatus& status) {
  if (!HasEnded(status)) return false;
  if (spec.when == api::WarmupWhen::kOnce) return true;
  const std::string digest = kube::TextAt(observed.dataset, "/status/manifestDigest");
  return digest.empty() || digest == status.manifest_digest;
}

}  // namespace

kube::IndexFunction JobsByWarmup() {
  return [](const Json& job) -> std::vector<std::string> {
    const auto name = kube::LabelOf(job, kWarmupLabel);
    if (!name) return {};
    return {kube::ObjectKey{.ns = kube::KeyOf(job).ns, .name = *name}.ToString()};
  };
}

WarmupObserved ObserveWarmup(const Json& warmup, const WarmupSources& sources, double now) {
  WarmupObserved observed{.warmup = warmup, .dataset = nullptr, .now = now};
  const kube::ObjectKey key = kube::KeyOf(warmup);
  const kube::ObjectKey of{.ns = key.ns, .name = kube::TextAt(warmup, "/spec/dataset")};
  if (const auto dataset = sources.datasets.Find(of);
      dataset != nullptr && !kube::IsBeingDeleted(*dataset)) {
    observed.dataset = *dataset;
    observed.plan = ChoosePlan(PlansOf(of, kube::UidOf(*dataset), sources.plans)).spec;
  }
  for (const auto& job : sources.jobs.Lookup(kByWarmup, key.ToString()))
    observed.jobs.emplace_back(ObserveJob(*job, sources.pods)).machines = MachinesOf(*job);
  return observed;
}

Decision DecideWarmup(const WarmupObserved& observed, const ReconcileSettings& settings) {
  if (kube::IsBeingDeleted(observed.warmup)) return {};
  Draft draft{
      .observed = observed, .status = api::ParseWarmupStatus(observed.warmup), .decision = {}};
  draft.status.observed_generation = kube::GenerationOf(observed.warmup);
  const Result<api::WarmupSpec> spec = api::ParseWarmupSpec(observed.warmup);
  if (!spec) {
    draft.Say(Stage::kFailed, "Invalid", spec.error().message());
  } else if (IsOver(observed, *spec, draft.status)) {
    Outlive(*spec, draft);
  } else {
    Advance(*spec, settings, draft);
  }
  Json object = kube::MakeObject(api::kWarmups, kube::KeyOf(observed.warmup));
  object["status"] = api::ToJson(draft.status);
  const bool goes = std::ranges::any_of(draft.decision.deletes, [](const Removal& removal) {
    return removal.resource == api::kWarmups;
  });
  if (!goes) {
    draft.decision.applies.insert(
        draft.decision.applies.begin(),
        {.resource = api::kWarmups, .object = std::move(object), .subresource = "status"});
  }
  return std::move(draft.decision);
}

}  // namespace optcache::reconcile
