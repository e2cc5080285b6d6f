#pragma once

// What `kubectl optcache explain job` tells of a job: its pods, its ranks, where its samples came
// from and what limits it. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/explain/finding.h"
#include "cli/explain/job_pods.h"
#include "cli/explain/pod_diagnosis.h"
#include "cli/explain/training_limit.h"

namespace optcache::cli {

// What the cluster answered, as JSON. nullopt: could not be had, and `unseen` says why.
struct JobAnswers {
  JobName job;
  std::optional<std::string> batch_job{};  // the Job; empty: there is none
  bool has_all_pods = true;                // of the job, in `pods` and `more_pods`
  std::vector<PodAnswers> pods{};
  std::size_t more_pods = 0;         // of the job, that were not looked at
  std::size_t silent_pages = 0;      // pods of `pods` whose sidecar's page could not be had
  std::vector<std::string> plans{};  // Lists of CachePlans, of the namespaces of its Datasets
  std::optional<std::string> events{};
  std::vector<PageLooks> pages{};  // of its sidecars
  std::vector<Finding> unseen{};
};

// Namespaces of the Datasets that the pods name, and of the job.
std::vector<std::string> PlanNamespacesOf(const JobAnswers& answers);

// kInvalidArgument: an answer is no object of its kind.
Result<Explanation> ExplainJob(const JobAnswers& answers);

// Of all pods or sidecars together.
Finding FindingOnReads(const Reads& reads);

}  // namespace optcache::cli
