#include "operator/reconcile/cacheplan/plan_status.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "kube/conditions.h"
#include "operator/api/resources.h"
#include "operator/reconcile/reasons.h"

namespace optcache::reconcile {
namespace {

using kube::ConditionStatus;
using kube::Json;

constexpr std::uint64_t kPositionSteps = 20;  // of a pass: what moves by less is not written
constexpr double kRateStep = 0.05;

const Json& JobBefore(const Json& plan, const std::string& name) {
  static const Json nothing;
  for (const Json& job : kube::Items(plan, "/status/jobs")) {
    if (kube::TextAt(job, "/name") == name) return job;
  }
  return nothing;
}

}  // namespace

Json DescribeJob(const PlanJob& job, const Json& plan) {
  const Json& before = JobBefore(plan, job.name);
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
  Json json = {{"name", job.name},     {"pass", job.pass},
               {"position", position}, {"ranks", job.ranks},
               {"rate", rate},         {"order", job.order_known ? "Known" : "Unknown"}};
  if (job.length > 0) json["length"] = job.length;
  if (job.reads_earlier) json["earlierManifest"] = true;
  if (!job.recipe.empty() && job.recipe.size() <= kMaxJobRecipe) {
    json["recipe"] = job.recipe;
    json["epoch"] = job.epoch;
    json["epochStep"] = job.epoch_step;
  }
  return json;
}

PlanStatus::PlanStatus(const PlanObserved& observed)
    : observed_(observed), conditions_(kube::Items(observed.plan, "/status/conditions")) {
  if (!conditions_.is_array()) conditions_ = Json::array();
  std::erase_if(conditions_.get_ref<Json::array_t&>(), [](const Json& condition) {
    return kube::TextAt(condition, "/type") == "Invalid";
  });
  json_["observedGeneration"] = kube::GenerationOf(observed.plan);
}

void PlanStatus::Set(const char* type, bool value, std::string reason, std::string message) {
  DCHECK(IsKnownReason(reason));
  kube::SetCondition(conditions_,
                     {.type = type,
                      .status = value ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                      .reason = std::move(reason),
                      .message = std::move(message),
                      .observed_generation = kube::GenerationOf(observed_.plan)},
                     observed_.now);
}

void PlanStatus::Keep(const char* field) {
  const Json& before = kube::Find(observed_.plan, std::string("/status/") + field);
  json_.erase(field);
  if (!before.is_null()) json_[field] = before;
}

Change PlanStatus::Finish() {
  json_["conditions"] = std::move(conditions_);
  Json object = kube::MakeObject(api::kCachePlans, kube::KeyOf(observed_.plan));
  object["status"] = std::move(json_);
  return {.resource = api::kCachePlans, .object = std::move(object), .subresource = "status"};
}

}  // namespace optcache::reconcile
