#pragma once

// Which CachePlan counts for a Dataset: what its user has written, else the one that the operator
// made with defaults, else the defaults themselves.

#include <string>
#include <vector>

#include "api/cache_plan.h"
#include "operator/reconcile/dataset/observed.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

struct PlanChoice {
  const PlanObject* chosen = nullptr;  // into `plans`; null: there is none
  std::string fault;                   // why the chosen one cannot be followed; empty: it can
  api::CachePlanSpec spec;             // what is in force
};

// Of several the user's goes before ours, then the oldest, then the first by name.
PlanChoice ChoosePlan(const std::vector<PlanObject>& plans);

// Makes one with defaults where there is none, and removes ours where the user has one. `dataset`
// is the object.
void DecidePlans(const Observed& observed, Decision& decision);

}  // namespace optcache::reconcile
