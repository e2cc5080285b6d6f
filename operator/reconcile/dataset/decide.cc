// Makes one Dataset's whole status from what was observed, and lists what is to be done.
//
// The status begins as it was written last. Indexing, numbers and conditions then overwrite what is
// known now, and what is not known stays: a new leader takes nothing back before it has heard the
// nodes. Ready is set last, from the others. `Conditions` compares each with the condition before,
// and makes an event when it becomes bad for more than work under way, and when it was bad and is
// good again. observedGeneration stays behind while a changed source is being indexed, because the
// old manifest is served.

#include "operator/reconcile/dataset/decide.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/dataset.h"
#include "base/check.h"
#include "base/some_of.h"
#include "kube/conditions.h"
#include "operator/api/resources.h"
#include "operator/reconcile/dataset/indexing.h"
#include "operator/reconcile/dataset/plan_choice.h"
#include "operator/reconcile/dataset/source_change.h"
#include "operator/reconcile/dataset/source_reach.h"
#include "operator/reconcile/dataset/status_numbers.h"
#include "operator/reconcile/reasons.h"

namespace optcache::reconcile {
namespace {

using kube::ConditionStatus;

// While nodes tell something, the numbers of the status are looked at so often.
constexpr Duration kNumbersEvery = std::chrono::seconds(15);
constexpr std::size_t kMaxConflictsShown = 3;

// The conditions of one Dataset, and the events that their changes are worth.
class Conditions {
 public:
  Conditions(const kube::Json& dataset, kube::Json before, double now)
      : dataset_(dataset),
        generation_(kube::GenerationOf(dataset)),
        conditions_(std::move(before)),
        now_(now) {}

  // What is set from now on is about this generation of the Dataset, not about the present one.
  void set_generation(std::int64_t generation) { generation_ = generation; }

  // `bad`: the status of which people are warned; none: nobody is told of this one.
  void Set(const std::string& type, ConditionStatus status, std::string reason, std::string message,
           std::optional<ConditionStatus> bad = std::nullopt) {
    DCHECK(IsKnownReason(reason));
    const kube::Condition before = kube::ConditionOf(dataset_, type);
    const kube::Condition condition{.type = type,
                                    .status = status,
                                    .reason = std::move(reason),
                                    .message = std::move(message),
                                    .observed_generation = generation_};
    if (bad && (before.status != status || before.reason != condition.reason))
      Tell(before, condition, *bad);
    kube::SetCondition(conditions_, condition, now_);
  }
  void Drop(std::string_view type) {
    if (!conditions_.is_array()) return;
    std::erase_if(conditions_.get_ref<kube::Json::array_t&>(), [&](const kube::Json& condition) {
      return kube::TextAt(condition, "/type") == type;
    });
  }

  bool Has(std::string_view type) const {
    return !kube::ConditionOf(dataset_, type).reason.empty();
  }
  const kube::Json& all() const { return conditions_; }
  std::vector<kube::EventText>& events() { return events_; }

 private:
  void Tell(const kube::Condition& before, const kube::Condition& now, ConditionStatus bad) {
    const bool is_bad = now.status == bad;
    const bool was_bad = before.status == bad && !before.reason.empty();
    if (is_bad ? UnderWay(now.reason) : !was_bad) return;
    events_.push_back({.type = is_bad ? kube::EventType::kWarning : kube::EventType::kNormal,
                       .reason = now.reason,
                       .action = "Reconcile",
                       .note = now.message});
  }
  static bool UnderWay(std::string_view reason) {
    return reason == "Indexing" || reason == "NotIndexed";
  }

  const kube::Json& dataset_;
  std::int64_t generation_;
  kube::Json conditions_;
  double now_;
  std::vector<kube::EventText> events_;
};

void SetListed(const Observed& observed, const api::DatasetSpec& spec, const Indexing& indexing,
               std::string_view manifest, Conditions& conditions) {
  const bool is_of_this = observed.cache && observed.cache->manifest_digest == manifest;
  // What was said of it before it was listed again does not count.
  const kube::Condition before = indexing.result
                                     ? kube::Condition{.type = "SourceReachable"}
                                     : kube::ConditionOf(observed.dataset, "SourceReachable");
  SourceReach reach = JudgeSource(spec, before, is_of_this ? &observed.cache->store : nullptr);
  const bool told = IsOfSidecars(reach.reason);
  conditions.Set("SourceReachable", reach.status, std::move(reach.reason), std::move(reach.message),
                 told ? std::optional(ConditionStatus::kFalse) : std::nullopt);
}

void SetIndexed(const Observed& observed, const api::DatasetSpec& spec, const Indexing& indexing,
                std::string_view manifest, Conditions& conditions) {
  conditions.Set("Indexed", indexing.done ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                 indexing.reason, indexing.message, ConditionStatus::kFalse);
  switch (indexing.source) {
    case SourceState::kReachable:
      SetListed(observed, spec, indexing, manifest, conditions);
      break;
    case SourceState::kUnreachable:
      conditions.Set("SourceReachable", ConditionStatus::kFalse, indexing.reason, indexing.message);
      break;
    case SourceState::kUnknown:
      if (conditions.Has("SourceReachable")) break;
      conditions.Set("SourceReachable", ConditionStatus::kUnknown, "NotTried",
                     "the source has not been listed yet");
      break;
  }
}

// What sidecars say of a changed object reaches the operator up to this long after the read: a
// minute at the sidecar, another one at the node.
constexpr double kChangeIsToldForSeconds = 120;

// A read before the list was made may be what is told now, also where the list is the same as
// before.
bool WasJustListed(const Observed& observed) {
  return std::ranges::any_of(observed.jobs, [&](const IndexJob& job) {
    return job.state == JobState::kSucceeded &&
           observed.now - job.finished_at < kChangeIsToldForSeconds;
  });
}

// Of an object that is not the one that was indexed, as sidecars say that have read it.
void SetStale(const Observed& observed, bool listed_again, std::string_view manifest,
              Conditions& conditions) {
  if (listed_again) return conditions.Drop("Stale");
  if (!conditions.Has("Stale") && WasJustListed(observed)) return;
  const bool is_of_this = observed.cache && observed.cache->manifest_digest == manifest;
  std::optional<std::string> change = JudgeChange(kube::ConditionOf(observed.dataset, "Stale"),
                                                  is_of_this ? &observed.cache->store : nullptr);
  if (!change) return;
  conditions.Set("Stale", ConditionStatus::kTrue, "SourceChanged", *std::move(change),
                 ConditionStatus::kTrue);
}

void SetManifestLost(bool lost, Conditions& conditions) {
  if (lost) {
    conditions.Set("ManifestLost", ConditionStatus::kTrue, "NoHolder",
                   "no node has the list of samples any more: it is made again",
                   ConditionStatus::kTrue);
  } else {
    conditions.Set("ManifestLost", ConditionStatus::kFalse, "Held", "nodes hold the manifest",
                   ConditionStatus::kTrue);
  }
}

// True if the Dataset is placed, as far as is known.
bool SetPlaced(const Observed& observed, bool indexed, Conditions& conditions) {
  if (!indexed) {
    conditions.Set("Placed", ConditionStatus::kFalse, "NotIndexed",
                   "nodes are chosen once its samples are known", ConditionStatus::kFalse);
    return false;
  }
  if (observed.too_many) {
    conditions.Set("Placed", ConditionStatus::kFalse, "TooManyDatasets",
                   "nodes serve at most 256 Datasets: the oldest of them", ConditionStatus::kFalse);
    return false;
  }
  if (!observed.placed) {  // what was known stays, until nodes have been heard
    return kube::ConditionOf(observed.dataset, "Placed").status == ConditionStatus::kTrue;
  }
  const Placed& placed = *observed.placed;
  const bool ok = !placed.members.empty();
  conditions.Set("Placed", ok ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                 std::string(ToText(placed.reason)), placed.message, ConditionStatus::kFalse);
  return ok;
}

void SetDegraded(const Observed& observed, const PlanChoice& plan, Conditions& conditions) {
  std::string reason = "AsWanted";
  std::string message = "nothing keeps it from being cached as its Dataset and CachePlan say";
  if (observed.cache && !observed.cache->conflicts.empty()) {
    reason = "OrderUnknown";
    message = "jobs whose ranks disagree are cached without a plan: ";
    for (std::size_t i = 0; i < std::min(observed.cache->conflicts.size(), kMaxConflictsShown); ++i)
      message += (i > 0 ? "; " : "") + observed.cache->conflicts[i];
  }
  if (observed.placed && !observed.placed->members.empty() && !observed.placed->HasAll()) {
    reason = "CapacityNotGranted";
    message =
        fmt::format("nodes have room for {} of the {} that it asks for",
                    FormatBytes(observed.placed->granted), FormatBytes(observed.placed->maximum));
    if (!observed.placed->why.empty()) message += ": " + observed.placed->why;
  }
  if (observed.cache && !observed.cache->nodes_that_differ.empty()) {
    reason = "PlansDiffer";
    message = "these nodes have derived other plans than the rest from the same inputs: " +
              SomeOf(observed.cache->nodes_that_differ) + ": please report this";
  }
  if (!plan.fault.empty()) {
    reason = "PlanInvalid";
    message = fmt::format("CachePlan {} is not followed, but what was in force before: {}",
                          plan.chosen->name, plan.fault);
  }
  conditions.Set("Degraded",
                 reason == "AsWanted" ? ConditionStatus::kFalse : ConditionStatus::kTrue, reason,
                 message, ConditionStatus::kTrue);
}

void SetReady(const kube::Json& conditions_now, bool indexed, bool placed, bool lost,
              Conditions& conditions) {
  const auto because = [&](std::string_view type) {
    for (const kube::Json& condition : conditions_now) {
      if (kube::TextAt(condition, "/type") == type)
        return std::pair(kube::TextAt(condition, "/reason"), kube::TextAt(condition, "/message"));
    }
    return std::pair(std::string(type), std::string());
  };
  const auto set = [&](ConditionStatus status, std::pair<std::string, std::string> why) {
    conditions.Set("Ready", status, std::move(why.first), std::move(why.second));
  };
  if (!indexed) return set(ConditionStatus::kFalse, because("Indexed"));
  if (lost) return set(ConditionStatus::kFalse, because("ManifestLost"));
  if (!placed) return set(ConditionStatus::kFalse, because("Placed"));
  set(ConditionStatus::kTrue, {"Serving", "training pods are served from the cache"});
}

Change StatusChange(const kube::Json& dataset, const api::DatasetStatus& status) {
  kube::Json object = kube::MakeObject(api::kDatasets, kube::KeyOf(dataset));
  object["status"] = ToJson(status);
  return {.resource = api::kDatasets, .object = std::move(object), .subresource = "status"};
}

Decision DecideInvalid(const Observed& observed, api::DatasetStatus status,
                       const std::string& fault) {
  Conditions conditions(observed.dataset, status.conditions, observed.now);
  conditions.Set("Invalid", ConditionStatus::kTrue, "Invalid", fault, ConditionStatus::kTrue);
  conditions.Set("Ready", ConditionStatus::kFalse, "Invalid", fault);
  status.conditions = conditions.all();
  Decision decision;
  decision.applies.push_back(StatusChange(observed.dataset, status));
  decision.events = std::move(conditions.events());
  return decision;
}

// An Event of what is different, if it is.
std::optional<kube::EventText> TakeChange(const IndexResult& result, double now,
                                          api::DatasetStatus& status) {
  if (status.manifest_digest.empty() || status.manifest_digest == result.digest) return {};
  status.last_change = SourceChangeOf(result.changes, now);
  return kube::EventText{.type = kube::EventType::kNormal,
                         .reason = "ListChanged",
                         .action = "Reconcile",
                         .note = status.last_change->message};
}

void TakeResult(const IndexResult& result, std::string mark, api::DatasetStatus& status) {
  status.index_hash = std::move(mark);
  status.manifest_digest = result.digest;
  status.samples = result.samples;
  status.bytes = result.bytes;
  status.largest_sample = result.largest;
}

}  // namespace

Decision DecideDataset(const Observed& observed, const ReconcileSettings& settings) {
  if (kube::IsBeingDeleted(observed.dataset)) return {};
  api::DatasetStatus status = api::ParseDatasetStatus(observed.dataset);
  const std::int64_t served_before = status.observed_generation;
  status.observed_generation = kube::GenerationOf(observed.dataset);
  const Result<api::DatasetSpec> spec = api::ParseDatasetSpec(observed.dataset);
  if (!spec) return DecideInvalid(observed, std::move(status), spec.error().message());

  Decision decision;
  Indexing indexing = DecideIndexing(observed, *spec, status, settings);
  const bool lost = IsManifestLost(observed, status);
  std::optional<kube::EventText> change;
  if (indexing.result) {
    change = TakeChange(*indexing.result, observed.now, status);
    TakeResult(*indexing.result, ToText(indexing.mark), status);
  }
  if (observed.cache && observed.cache->manifest_digest == status.manifest_digest)
    TakeNumbers(*observed.cache, status);
  if (observed.placed) status.capacity = CapacityOf(*observed.placed);
  if (observed.saved) TakeSaved(*observed.saved, spec->price, observed.now, status);

  Conditions conditions(observed.dataset, status.conditions, observed.now);
  conditions.Drop("Invalid");
  const bool indexed = !status.manifest_digest.empty();
  SetIndexed(observed, *spec, indexing, status.manifest_digest, conditions);
  SetStale(observed, indexing.result.has_value(), status.manifest_digest, conditions);
  const bool placed = SetPlaced(observed, indexed, conditions);
  if (indexed) {
    SetManifestLost(lost, conditions);
  } else {
    conditions.Drop("ManifestLost");
  }
  SetDegraded(observed, ChoosePlan(observed.plans), conditions);
  // While a change is being indexed, what is served is the Dataset as it was before.
  if (indexed && ParseIndexMark(status.index_hash).hash != indexing.mark.hash)
    status.observed_generation = served_before;
  conditions.set_generation(status.observed_generation);
  SetReady(conditions.all(), indexed, placed, lost, conditions);
  status.conditions = conditions.all();

  decision.applies.push_back(StatusChange(observed.dataset, status));
  std::ranges::move(indexing.applies, std::back_inserter(decision.applies));
  decision.deletes = std::move(indexing.deletes);
  DecidePlans(observed, decision);
  decision.events = std::move(conditions.events());
  if (change) decision.events.push_back(*std::move(change));
  decision.requeue_after = indexing.requeue_after;
  if (observed.cache && decision.requeue_after.value_or(kNumbersEvery) >= kNumbersEvery)
    decision.requeue_after = kNumbersEvery;
  return decision;
}

}  // namespace optcache::reconcile
