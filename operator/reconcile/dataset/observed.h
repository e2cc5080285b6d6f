#pragma once

// What a decision about one Dataset is made of; observe.h gathers it.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/cache_plan.h"
#include "base/bytes.h"
#include "base/result.h"
#include "coordination/status.h"
#include "kube/object.h"
#include "operator/api/dataset_status.h"
#include "operator/reconcile/placement/placement.h"

namespace optcache::reconcile {

enum class JobState { kRunning, kSucceeded, kFailed };

// An index Job, or that of a warm-up.
struct IndexJob {
  std::string name;
  std::string uid;
  std::string owner_uid;  // of the Dataset that controls it
  bool deleting = false;
  JobState state = JobState::kRunning;
  double created_at = 0;             // Unix seconds
  bool has_pod = false;              // one has been made, also if it is gone
  double finished_at = 0;            // Unix seconds; 0: not yet
  std::string result;                // what its newest pod that has ended said
  std::vector<std::string> results;  // what each of its pods that have ended said, the oldest first
  std::int64_t completions = 1;      // pods that are to succeed
  std::string trouble;               // why its pod does not run, or how the Job failed
  std::set<std::string> machines;    // that a Job of a Warmup fills
};

struct PlanObject {
  std::string name;
  std::string uid;
  std::string created;      // as the API server writes times, which sort as text
  bool made_by_us = false;  // and changed by nobody since
  Result<api::CachePlanSpec> spec;
};

// What the coordinator knows of it.
struct CacheView {
  std::string manifest_digest;
  std::uint64_t manifest_holders = 0;
  double manifest_missed_seconds = 0;
  ByteCount cached_bytes = 0;
  std::uint64_t cached_samples = 0;
  // Kubernetes nodes on which it is placed, ascending, with what each has granted to it.
  std::vector<api::NodeBytes> placed;
  std::vector<api::NodeBytes> nodes;  // where it is placed or held, ascending by Kubernetes node
  std::optional<double> hit_ratio;
  std::optional<double> predicted_hit_ratio;
  std::vector<std::string> nodes_that_differ;  // from plans that others derived of the same
  std::size_t jobs_of_before = 0;              // that read a manifest which the Dataset had before
  std::vector<std::string> conflicts;          // "vision/job/train: seed: 0 (rank 0), 1 (rank 3)"
  coordination::StoreStatus store;
};

struct Observed {
  kube::Json dataset;
  std::vector<IndexJob> jobs;     // index Jobs under its name, also of an earlier Dataset
  std::vector<PlanObject> plans;  // CachePlans of its namespace that name it
  bool plan_name_taken = false;   // a CachePlan has its name and is for another
  bool too_many = false;          // there are more Datasets than nodes can be told of
  std::optional<Placed> placed;   // not known before all nodes have been heard
  std::optional<CacheView> cache;
  std::optional<coordination::Savings> saved;  // in all, also before
  double now = 0;                              // Unix seconds
};

}  // namespace optcache::reconcile
