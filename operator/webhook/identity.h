#pragma once

// Which job a pod belongs to: all pods of a job get the same owner, so that their loaders are ranks
// of one stream, and after each restart that its controller counts a higher incarnation.

#include <cstdint>
#include <optional>
#include <string>

#include "operator/webhook/request.h"

namespace optcache::webhook {

struct Identity {
  // "resnet.4f6c8a1e": name and the head of the UID. Empty: the pod is a job of its own, whose
  // owner is the pod's UID, known only when it runs.
  std::string owner;
  std::uint32_t incarnation = 1;
  // The pod's number among those of its job, by which its ranks are known; nothing: none says it.
  std::optional<std::uint32_t> index{};
  friend bool operator==(const Identity&, const Identity&) = default;
};

// Of owner and incarnation: what the request says; else a JobSet's labels (TrainJobs have them,
// too); else the group of a LeaderWorkerSet; else the controller of the pod: Job, PyTorchJob,
// StatefulSet and any other. The index is that of an Indexed Job, a StatefulSet, a LeaderWorkerSet
// or a PyTorchJob, whose workers follow its master.
Identity IdentityOf(const Json& pod, const InjectionRequest& request);

}  // namespace optcache::webhook
