#pragma once

// What the coordinator is to serve, as its host has it from the user.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "coordination/state.h"

namespace optcache::coordination {

// The order of a job's stream, where it announces none. The job is the second part of a stream's
// name, NAMESPACE/JOB/DATASET/LOADER.
struct JobRecipe {
  std::string job;
  Recipe recipe;
  friend bool operator==(const JobRecipe&, const JobRecipe&) = default;
};

// A revision of a CachePlan.
struct RevisionSpec {
  std::string name;
  Retention retention = Retention::kOptimal;
  Objective objective = Objective::kBytes;
  std::vector<JobRecipe> jobs;  // at most kMaxJobsOfPlan
  friend bool operator==(const RevisionSpec&, const RevisionSpec&) = default;
};

// Nodes that follow another revision than the dataset's own.
struct UpdateSpec {
  RevisionSpec revision;
  std::vector<std::string> nodes;  // ascending; others are left out
  friend bool operator==(const UpdateSpec&, const UpdateSpec&) = default;
};

struct TrialSpec {
  std::string id;
  RevisionSpec revision;
  bool on_request = false;  // it is compared with others that are, and with no others
  friend bool operator==(const TrialSpec&, const TrialSpec&) = default;
};

// What the user wants of one dataset.
struct DatasetSpec {
  std::string name;             // "namespace/name"
  std::string manifest_digest;  // hex
  DatasetKey key = 0;
  std::uint64_t samples = 0;
  ByteCount bytes = 0;     // of all samples
  ByteCount capacity = 0;  // wanted of all members together
  Retention retention = Retention::kOptimal;
  Objective objective = Objective::kBytes;
  std::vector<std::string> namespaces;             // whose pods may use it
  std::optional<std::vector<std::string>> placed;  // nodes that hold it, ascending; nullopt: all
  // Of each of `placed`, together `capacity`; empty: in proportion to what they offer.
  std::vector<ByteCount> shares;
  // Wanted in memory and on disk together, if its samples may lie on disk; 0: they may not.
  ByteCount with_disk = 0;
  std::string note;      // why its capacity is what it is, for the status; empty: as was asked for
  std::string revision;  // of `retention`, `objective` and `jobs`; empty: of no name
  std::vector<JobRecipe> jobs;  // at most kMaxJobsOfPlan
  std::optional<UpdateSpec> update;
  std::vector<TrialSpec> trials;  // at most kMaxTrials
  StoreLimits limits;             // of its store, for all sidecars together
  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;
};

}  // namespace optcache::coordination
