#pragma once

// Which pods a job has, and by which names people know it. Pure.

#include <set>
#include <string>
#include <string_view>

#include "kube/object.h"

namespace optcache::cli {

// Labels that controllers give to pods with the name of their job.
inline constexpr const char* kJobLabels[] = {
    "batch.kubernetes.io/job-name",   "job-name",
    "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name",
    "training.kubeflow.org/job-name", "ray.io/cluster",
};

// The names of the job that a pod is of: of its controller, of the one above where a label says it,
// and the one that its streams have.
std::set<std::string> JobNamesOf(const kube::Json& pod);

// The owner in the names of the pod's streams, "resnet.1a2b3c4d"; empty: it has no sidecar.
std::string StreamOwnerOf(const kube::Json& pod);

// What a person may call a job: "train", "job/train", or a stream's name,
// "vision/train.1a2b3c4d/imagenet/loader".
struct JobName {
  std::string name_space;  // empty: it has none
  std::string name;
  std::string stream;  // empty: a whole job
};
// kInvalidArgument: no job can have that name.
Result<JobName> ParseJobName(std::string_view word);

}  // namespace optcache::cli
