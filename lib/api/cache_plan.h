#pragma once

// A CachePlan: manifests/crds/cacheplans.yaml in C++.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/enumerations.h"
#include "api/source.h"
#include "base/result.h"
#include "dataset/capacity_goal.h"

namespace optcache::api {

enum class JobSampler : std::uint8_t { kTorchDistributed, kTorchRandom };
inline constexpr Names<JobSampler, 2> kJobSamplers{
    {{"TorchDistributed", JobSampler::kTorchDistributed},
     {"TorchRandom", JobSampler::kTorchRandom}}};

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

struct MaxUnavailable {
  std::uint64_t amount = 25;
  bool percent = true;  // of the nodes, rounded up
  friend bool operator==(const MaxUnavailable&, const MaxUnavailable&) = default;
};

// spec.rollout.
struct RolloutKnobs {
  bool all_at_once = false;
  bool at_epoch_boundary = true;
  bool paused = false;
  bool acknowledge = false;
  std::uint64_t partition = 0;
  MaxUnavailable max_unavailable;
  std::uint64_t below_predicted_millionths = 50'000;
  std::uint64_t worse_than_previous_millionths = 50'000;
  std::uint32_t after = 1;  // passes of each stream
  std::int64_t progress_deadline_seconds = 600;
  std::int64_t epoch_deadline_seconds = 86'400;
  std::string restarted_at;
  friend bool operator==(const RolloutKnobs&, const RolloutKnobs&) = default;
};

struct CachePlanSpec {
  std::string dataset;  // of the same namespace
  Retention retention = Retention::kOptimal;
  plan::Objective objective = plan::Objective::kBytes;
  // By what capacity of the Dataset: commands ask, the operator carries nothing out.
  std::optional<dataset::CapacityGoal> goal{};
  std::vector<PlanJobSpec> jobs;
  RolloutKnobs rollout;
  std::int64_t revision_history = 10;
  friend bool operator==(const CachePlanSpec&, const CachePlanSpec&) = default;
};

// The field `spec` of a resource.
CachePlanSpec ReadCachePlanSpec(Fields& resource);

// Of a cluster's object; jobs by name. kInvalidArgument lists every error with its field.
Result<CachePlanSpec> ParseCachePlanSpec(const nlohmann::json& object);

// What of it nodes are asked to do, all defaults written out: the content of a revision. The other
// way round, from text that may be anybody's: kInvalidArgument.
nlohmann::json RevisionContent(const CachePlanSpec& spec);
Result<CachePlanSpec> ParseRevisionContent(const nlohmann::json& content);

}  // namespace optcache::api
