#pragma once

// All Datasets together: what the coordinator is to serve, and where. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/cache_plan.h"
#include "api/dataset.h"
#include "capacity/saved_bytes.h"
#include "coordination/status.h"
#include "coordinator/coordinator.h"
#include "operator/api/dataset_status.h"
#include "operator/reconcile/cacheplan/decide.h"
#include "operator/reconcile/cacheplan/prediction.h"
#include "operator/reconcile/dataset/observed.h"
#include "operator/reconcile/placement/placement.h"

namespace optcache::reconcile {

// A Dataset that can be understood.
struct ClusterDataset {
  std::string ns;
  std::string name;
  std::string created;  // as the API server writes times
  api::DatasetSpec spec;
  api::DatasetStatus status;
  api::CachePlanSpec plan;                              // of what is in force
  std::string revision;                                 // its hash
  coordination::RolloutState rollout;                   // as it is kept; `current` empty: none
  std::map<std::string, api::CachePlanSpec> revisions;  // contents that the rollout needs
  std::optional<PredictionQuestion> question;
  bool wants_gpus = false;

  std::string QualifiedName() const { return ns + "/" + name; }
};

// What Kubernetes says of the machine of a member.
struct MemberMachine {
  std::string node;  // of Kubernetes; empty: not known
  std::map<std::string, std::string> labels;
  std::uint64_t gpus = 0;
  double created_at = 0;  // its pod; Unix seconds
  bool cordoned = false;
  bool draining = false;
  bool leaving = false;
};

struct ClusterObserved {
  std::vector<ClusterDataset> datasets;
  const std::map<std::string, MemberMachine>* machines = nullptr;  // by member
  const coordination::DesiredState* state = nullptr;
  const coordination::ClusterStatus* status = nullptr;  // of the same moment
  const coordination::ClusterReads* reads = nullptr;    // by which memory is divided; null: none
  // Kubernetes nodes that warm-ups fill just now, by Dataset; null: none.
  const std::map<std::string, std::set<std::string>>* warmed = nullptr;
  // Where Datasets are to be; null: where the coordinator's state has them.
  const std::map<std::string, Placed>* placed = nullptr;
};

struct ClusterPlan {
  std::vector<coordination::DatasetSpec> specs;
  std::map<std::string, Placed> placed;  // by qualified name, of those that are indexed
  std::set<std::string> too_many;        // indexed and beyond coordination::kMaxDatasets
};

ClusterPlan PlanCluster(const ClusterObserved& observed);

// Bytes a second of the stores that what `plan` grants saves by the rates of `observed`.
double SavedBy(const ClusterPlan& plan, const ClusterObserved& observed);

// What PlanCluster depends on of the coordinator's state: it is asked again when this changes.
struct ClusterSigns {
  // With the memory that they offer, and the disk.
  std::map<std::string, std::pair<ByteCount, ByteCount>> members;
  std::map<std::string, std::set<std::string>> readers;  // by Dataset
  std::map<std::string, std::set<std::string>> holders;
  friend bool operator==(const ClusterSigns&, const ClusterSigns&) = default;
};
ClusterSigns SignsOf(const coordination::ClusterStatus& status);

// What the coordinator knows of one Dataset, for its status; nullopt if it does not know it.
std::optional<CacheView> ViewOf(const ClusterObserved& observed, const std::string& dataset);
std::optional<PlanView> PlanViewOf(const ClusterObserved& observed, const std::string& dataset);

// What the rollout of a Dataset's CachePlan asks of nodes now; PlanCluster gives it to the
// coordinator.
coordination::RolloutOrders OrdersOf(const coordination::RolloutState& rollout,
                                     const ClusterObserved& observed, const std::string& dataset);

}  // namespace optcache::reconcile
