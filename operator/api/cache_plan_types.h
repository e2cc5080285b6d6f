#pragma once

// A CachePlan as the operator reads it: manifests/crds/cacheplans.yaml in C++. What the API
// server's rules refuse is refused here as well: older servers do not know them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/enumerations.h"
#include "base/result.h"
#include "coordination/dataset_spec.h"
#include "coordination/state.h"
#include "coordinator/rollout.h"
#include "dataset/capacity_goal.h"
#include "kube/object.h"
#include "kube/resources.h"

namespace optcache::api {

inline constexpr kube::Resource kCachePlans{
    .group = "optcache.io", .version = "v1alpha1", .kind = "CachePlan", .plural = "cacheplans"};

inline constexpr std::int64_t kDefaultRevisionHistory = 10;

enum class JobSampler : std::uint8_t { kTorchDistributed, kTorchRandom };

// In what order a job reads.
struct PlanJobSpec {
  std::string name;
  JobSampler sampler = JobSampler::kTorchDistributed;
  std::int64_t seed = 0;
  std::int64_t world = 1;
  std::int64_t epochs = 1;
  bool shuffle = true;
  bool drop_last = false;
  friend bool operator==(const PlanJobSpec&, const PlanJobSpec&) = default;
};

struct CachePlanSpec {
  std::string dataset;  // of the same namespace
  Retention retention = Retention::kOptimal;
  plan::Objective objective = plan::Objective::kBytes;
  std::vector<PlanJobSpec> jobs;  // by name
  coordination::RolloutKnobs rollout;
  std::int64_t revision_history = kDefaultRevisionHistory;
  // By what capacity of the Dataset: commands ask, the operator carries nothing out.
  std::optional<dataset::CapacityGoal> goal{};
  friend bool operator==(const CachePlanSpec&, const CachePlanSpec&) = default;
};

// kInvalidArgument lists every fault with its field.
Result<CachePlanSpec> ParseCachePlanSpec(const kube::Json& object);

// What of it nodes are asked to do, all defaults written out: the content of a revision. The other
// way round, from text that may be anybody's: kInvalidArgument.
kube::Json RevisionContent(const CachePlanSpec& spec);
Result<CachePlanSpec> ParseRevisionContent(const kube::Json& content);

// As the coordinator takes it.
std::vector<coordination::JobRecipe> RecipesOf(const std::vector<PlanJobSpec>& jobs);

}  // namespace optcache::api
