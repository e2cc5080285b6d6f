#pragma once

// The status of one CachePlan. Pure. What it asks for comes into force by the coordinator, at once
// and on all nodes together; here is only said how far that is.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

// A stream that reads the Dataset now.
struct PlanJob {
  std::string name;
  std::uint64_t pass = 0;
  std::uint64_t position = 0;
  std::uint64_t length = 0;  // of a pass
  std::uint64_t ranks = 0;
  double rate = 0;  // samples a second; 0: not measured
  bool order_known = true;
};

// What the coordinator knows of the plan in force.
struct PlanView {
  std::string digest;               // of what nodes derived; empty: nothing is planned
  std::uint64_t nodes_desired = 0;  // on which the Dataset is placed
  std::uint64_t nodes_active = 0;   // that have taken over the newest inputs
  std::optional<double> predicted_hit_ratio;
  std::optional<double> observed_hit_ratio;  // nothing was read yet
  std::vector<PlanJob> jobs;
};

struct PlanObserved {
  kube::Json plan;
  bool dataset_exists = false;
  std::string followed;          // the CachePlan that counts for the Dataset
  std::optional<PlanView> view;  // not known (yet)
  double now = 0;                // Unix seconds
};

// Conditions: Available (nodes follow it), Progressing (some do not yet), Degraded; Invalid stands
// only on one that cannot be understood.
Decision DecideCachePlan(const PlanObserved& observed);

}  // namespace optcache::reconcile
