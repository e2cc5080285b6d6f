#include "operator/reconcile/dataset/plan_choice.h"

#include <algorithm>
#include <tuple>

#include "operator/api/resources.h"

namespace optcache::reconcile {
namespace {

kube::Json BuildDefaultPlan(const kube::Json& dataset) {
  const kube::ObjectKey key = kube::KeyOf(dataset);
  kube::Json plan = kube::MakeObject(api::kCachePlans, key);
  plan["metadata"]["labels"] = {{kManagedByLabel, kManagedBy}};
  plan["metadata"]["ownerReferences"] =
      kube::Json::array({kube::OwnerReference(api::kDatasets, dataset)});
  plan["spec"] = {{"dataset", key.name}};
  return plan;
}

}  // namespace

PlanChoice ChoosePlan(const std::vector<PlanObject>& plans) {
  PlanChoice choice;
  const auto first = std::ranges::min_element(plans, {}, [](const PlanObject& plan) {
    return std::tuple(plan.made_by_us, plan.created, plan.name);
  });
  if (first == plans.end()) return choice;
  choice.chosen = &*first;
  if (first->spec) {
    choice.spec = *first->spec;
  } else {
    choice.fault = first->spec.error().message();
  }
  return choice;
}

void DecidePlans(const Observed& observed, Decision& decision) {
  const bool users =
      std::ranges::any_of(observed.plans, [](const PlanObject& plan) { return !plan.made_by_us; });
  if (observed.plans.empty() && !observed.plan_name_taken) {
    // Its user's may be on its way: that one stays the user's.
    decision.applies.push_back({.resource = api::kCachePlans,
                                .object = BuildDefaultPlan(observed.dataset),
                                .create_only = true});
  }
  if (!users) return;
  for (const PlanObject& plan : observed.plans) {
    if (!plan.made_by_us) continue;
    decision.deletes.push_back({.resource = api::kCachePlans,
                                .key = {.ns = kube::KeyOf(observed.dataset).ns, .name = plan.name},
                                .uid = plan.uid});
  }
}

}  // namespace optcache::reconcile
