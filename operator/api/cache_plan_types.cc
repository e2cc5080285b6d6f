#include "operator/api/cache_plan_types.h"

#include <array>

#include "operator/api/fields.h"

namespace optcache::api {
namespace {

using coordination::Objective;
using coordination::Retention;

constexpr std::size_t kMaxPlanName = 63;
constexpr std::array<std::pair<std::string_view, Retention>, 4> kRetentions{
    {{"Optimal", Retention::kOptimal},
     {"Pin", Retention::kPin},
     {"LRU", Retention::kLru},
     {"None", Retention::kNone}}};
constexpr std::array<std::pair<std::string_view, Objective>, 2> kObjectives{
    {{"Bytes", Objective::kBytes}, {"Requests", Objective::kRequests}}};

}  // namespace

Result<CachePlanSpec> ParseCachePlanSpec(const kube::Json& object) {
  Faults faults;
  Fields spec(kube::Find(object, "/spec"), "spec", faults);
  CachePlanSpec plan;
  spec.Need("dataset", kMaxPlanName, plan.dataset);
  spec.Read("retention", std::span<const std::pair<std::string_view, Retention>>(kRetentions),
            plan.retention);
  spec.Read("objective", std::span<const std::pair<std::string_view, Objective>>(kObjectives),
            plan.objective);
  RETURN_IF_ERROR(faults.status());
  return plan;
}

}  // namespace optcache::api
