#pragma once

// What is done for one CachePlan: its revisions, how far the rollout of the newest is, and its
// status. Pure. What a step asks of nodes follows from the status that is written, not from here:
// reconcile/cluster.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/rollout.h"
#include "operator/reconcile/cacheplan/revisions.h"
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
  std::string recipe{};          // of its order, as text; empty: it has none
  std::uint64_t epoch = 0;       // of `pass`
  std::uint32_t epoch_step = 1;  // to that of the next pass
  bool reads_earlier = false;    // a manifest that the Dataset had before
  std::string differs{};         // from what spec.jobs says of it; empty: it does not
};

// What the coordinator knows of the plan in force.
struct PlanView {
  std::string digest;                            // of what nodes derived; empty: nothing is planned
  std::uint64_t nodes_desired = 0;               // on which the Dataset is placed
  std::uint64_t nodes_active = 0;                // that follow a revision
  std::vector<std::string> nodes_that_differ{};  // from plans that others derived of the same
  std::vector<PlanJob> jobs;
  std::vector<coordination::RolloutNode> nodes{};      // nodes_desired of them, by name
  std::vector<coordination::ReadingStream> streams{};  // that have not ended
  ByteCount memory = 0;                                // that nodes grant the Dataset
  bool all_known = true;                               // else there may be more
  std::vector<coordination::PassStatus> passes{};
  ByteCount mean_sample_bytes = 0;
  std::vector<std::string> drifted{};  // nodes that have long followed nothing that they should
  bool some_drift = false;             // those, and some that have not for long
  std::vector<std::string> missing{};  // machines whose node is no member, by name
  bool some_are_absent = false;        // those, and some that have not been missed for long
};

struct PlanObserved {
  kube::Json plan;
  bool dataset_exists = false;
  std::string followed;             // the CachePlan that counts for the Dataset
  std::vector<Revision> revisions;  // as RevisionsOf
  std::optional<PlanView> view;     // not known (yet)
  double now = 0;                   // Unix seconds
};

// Conditions: Available (nodes follow it), Progressing (a rollout moves), Degraded; Invalid stands
// only on one that cannot be understood.
Decision DecideCachePlan(const PlanObserved& observed);

// What the state machine is told of nodes and jobs; `revision` and `knobs` are the spec's.
coordination::RolloutInputs InputsOf(const PlanView& view, double now);

}  // namespace optcache::reconcile
