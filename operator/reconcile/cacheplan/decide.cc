#include "operator/reconcile/cacheplan/decide.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"
#include "coordination/codec.h"
#include "dataset/digest.h"
#include "kube/conditions.h"
#include "operator/api/cache_plan_types.h"
#include "operator/api/not_supported.h"
#include "operator/reconcile/reasons.h"

namespace optcache::reconcile {
namespace {

using kube::ConditionStatus;
using kube::Json;

constexpr std::size_t kMaxJobs = 256;  // of status.jobs
constexpr std::size_t kMaxJobName = 512;
constexpr std::size_t kRevisionDigits = 10;
constexpr std::uint64_t kPositionSteps = 20;  // of a pass: what moves by less is not written
constexpr double kRateStep = 0.05;
constexpr Duration kLookEvery = std::chrono::seconds(15);

// What the plan asks for, by name: equal specs have equal revisions.
std::string RevisionOf(const api::CachePlanSpec& spec) {
  const std::string text = fmt::format("{} {}", coordination::RetentionName(spec.retention),
                                       coordination::ObjectiveName(spec.objective));
  return dataset::ToHex(dataset::Sha256Of(AsBytes(text))).substr(0, kRevisionDigits);
}

const Json kNothing;

const Json& JobBefore(const Json& plan, const std::string& name) {
  for (const Json& job : kube::Items(plan, "/status/jobs")) {
    if (kube::TextAt(job, "/name") == name) return job;
  }
  return kNothing;
}

// Positions and rates move all the time; small steps keep what was written.
Json Describe(const PlanJob& job, const Json& before) {
  std::uint64_t position = job.position;
  const auto old_position = kube::NumberAt(before, "/position");
  const bool same_pass = kube::NumberAt(before, "/pass") == static_cast<std::int64_t>(job.pass);
  if (same_pass && old_position && *old_position >= 0) {
    const auto old = static_cast<std::uint64_t>(*old_position);
    const std::uint64_t moved = old > position ? old - position : position - old;
    if (moved * kPositionSteps < job.length) position = old;
  }
  std::string rate = fmt::format("{:.1f}", job.rate);
  const std::string old_rate = kube::TextAt(before, "/rate");
  if (!old_rate.empty()) {
    const double old = std::strtod(old_rate.c_str(), nullptr);
    if (std::abs(old - job.rate) < kRateStep * std::max(old, job.rate)) rate = old_rate;
  }
  return {{"name", job.name.substr(0, kMaxJobName)},
          {"pass", job.pass},
          {"position", position},
          {"ranks", job.ranks},
          {"rate", rate},
          {"order", job.order_known ? "Known" : "Unknown"}};
}

class PlanStatus {
 public:
  explicit PlanStatus(const PlanObserved& observed)
      : observed_(observed), conditions_(kube::Items(observed.plan, "/status/conditions")) {
    if (!conditions_.is_array()) conditions_ = Json::array();
    std::erase_if(conditions_.get_ref<Json::array_t&>(), [](const Json& condition) {
      return kube::TextAt(condition, "/type") == "Invalid";
    });
    json_["observedGeneration"] = kube::GenerationOf(observed.plan);
  }

  void Set(const char* type, bool value, std::string reason, std::string message) {
    DCHECK(IsKnownReason(reason));
    kube::SetCondition(conditions_,
                       {.type = type,
                        .status = value ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                        .reason = std::move(reason),
                        .message = std::move(message),
                        .observed_generation = kube::GenerationOf(observed_.plan)},
                       observed_.now);
  }
  Json& json() { return json_; }

  Change Finish() {
    json_["conditions"] = std::move(conditions_);
    Json object = kube::MakeObject(api::kCachePlans, kube::KeyOf(observed_.plan));
    object["status"] = std::move(json_);
    return {.resource = api::kCachePlans, .object = std::move(object), .subresource = "status"};
  }

 private:
  const PlanObserved& observed_;
  Json conditions_;
  Json json_ = Json::object();
};

void DescribeView(const PlanObserved& observed, const PlanView& view, const std::string& revision,
                  PlanStatus& status) {
  Json& json = status.json();
  const bool everywhere = view.nodes_desired > 0 && view.nodes_active >= view.nodes_desired;
  const std::string before = kube::TextAt(observed.plan, "/status/currentRevision");
  json["updateRevision"] = revision;
  if (everywhere || !before.empty()) json["currentRevision"] = everywhere ? revision : before;
  if (!view.digest.empty()) json["digest"] = view.digest;
  json["nodes"] = {{"desired", view.nodes_desired}, {"active", view.nodes_active}};
  if (view.predicted_hit_ratio)
    json["predicted"] = {{"hitRatio", fmt::format("{:.3f}", *view.predicted_hit_ratio)}};
  if (view.observed_hit_ratio)
    json["observed"] = {{"hitRatio", fmt::format("{:.3f}", *view.observed_hit_ratio)}};
  for (std::size_t i = 0; i < std::min(view.jobs.size(), kMaxJobs); ++i)
    json["jobs"].push_back(Describe(view.jobs[i], JobBefore(observed.plan, view.jobs[i].name)));
  const std::string how_far =
      fmt::format("{} of {} nodes follow it", view.nodes_active, view.nodes_desired);
  if (view.nodes_desired == 0) {
    status.Set("Available", false, "NotPlaced", "the Dataset is on no node yet");
    status.Set("Progressing", false, "NotPlaced", "the Dataset is on no node yet");
  } else {
    status.Set("Available", view.nodes_active > 0, view.nodes_active > 0 ? "Followed" : "Waiting",
               how_far);
    status.Set("Progressing", !everywhere, everywhere ? "Complete" : "NodesChange", how_far);
  }
}

void SetDegraded(const PlanObserved& observed, bool valid, PlanStatus& status) {
  if (!valid) return status.Set("Degraded", true, "Invalid", "the defaults are followed instead");
  if (const auto fields = api::NotSupported(observed.plan); !fields.empty()) {
    return status.Set(
        "Degraded", true, "NotSupported",
        fmt::format("this version does not do what these ask for: {}", fmt::join(fields, ", ")));
  }
  const bool orders_known =
      !observed.view || std::ranges::all_of(observed.view->jobs, &PlanJob::order_known);
  if (orders_known) return status.Set("Degraded", false, "AsWanted", "what is read is planned");
  status.Set("Degraded", true, "OrderUnknown",
             "some jobs read in an order that is not known: see jobs");
}

// Keeps what was written while nothing new is known.
void KeepView(const Json& plan, PlanStatus& status) {
  for (const char* field :
       {"currentRevision", "updateRevision", "digest", "nodes", "predicted", "observed", "jobs"}) {
    const Json& before = kube::Find(plan, std::string("/status/") + field);
    if (!before.is_null()) status.json()[field] = before;
  }
}

}  // namespace

Decision DecideCachePlan(const PlanObserved& observed) {
  Decision decision;
  if (kube::IsBeingDeleted(observed.plan)) return decision;
  PlanStatus status(observed);
  const Result<api::CachePlanSpec> spec = api::ParseCachePlanSpec(observed.plan);
  if (!spec) {
    status.Set("Invalid", true, "Invalid", spec.error().message());
    status.Set("Available", false, "Invalid", spec.error().message());
  } else if (!observed.dataset_exists) {
    status.Set("Available", false, "NoDataset",
               "there is no Dataset " + spec->dataset + " in this namespace");
  } else if (observed.followed != kube::KeyOf(observed.plan).name) {
    status.Set("Available", false, "AnotherPlan",
               "the Dataset follows CachePlan " + observed.followed + ": remove one of them");
  } else if (observed.view) {
    DescribeView(observed, *observed.view, RevisionOf(*spec), status);
    decision.requeue_after = kLookEvery;
  } else {
    KeepView(observed.plan, status);
    if (kube::ConditionOf(observed.plan, "Available").reason.empty())
      status.Set("Available", false, "Waiting", "the Dataset is not indexed yet");
  }
  SetDegraded(observed, spec.has_value(), status);
  decision.applies.push_back(status.Finish());
  return decision;
}

}  // namespace optcache::reconcile
