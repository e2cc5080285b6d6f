#pragma once

// Gathers what is known of one Dataset from the informers' caches.

#include <string>
#include <vector>

#include "kube/object_cache.h"
#include "operator/reconcile/cluster/cluster_plan.h"
#include "operator/reconcile/dataset/observed.h"

namespace optcache::reconcile {

// The indexes that Observe looks into: of CachePlans by spec.dataset, of Jobs by their label, of
// pods by their Job; all as "namespace/name".
inline constexpr const char* kByDataset = "dataset";
inline constexpr const char* kByJob = "job";
kube::IndexFunction PlansByDataset();
kube::IndexFunction JobsByDataset();
kube::IndexFunction PodsByJob();

// Borrowed.
struct DatasetSources {
  const kube::ObjectCache& plans;  // with kByDataset
  const kube::ObjectCache& jobs;   // with kByDataset
  const kube::ObjectCache& pods;   // of index Jobs, with kByJob
};

// Without placement and the coordinator's view, which belong to all Datasets together.
Observed ObserveDataset(const kube::Json& dataset, const DatasetSources& sources, double now);

// The CachePlans that name this Dataset.
std::vector<PlanObject> PlansOf(const kube::ObjectKey& dataset, const std::string& uid,
                                const kube::ObjectCache& plans);

// A Job and what its pods say, which are looked up in a cache with kByJob.
IndexJob ObserveJob(const kube::Json& job, const kube::ObjectCache& pods);

// All that is read of Jobs and of their pods, as kube::KeepOnly takes it.
const std::vector<std::string>& JobFields();
const std::vector<std::string>& IndexPodFields();

}  // namespace optcache::reconcile
