#pragma once

// What a reconciliation wants done; reconcile/apply.h does it.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/event_series.h"
#include "kube/object.h"
#include "kube/resources.h"

namespace optcache::reconcile {

// By server-side apply: `object` holds all fields that we want, and no other.
struct Change {
  kube::Resource resource;
  kube::Json object;
  std::string subresource;   // "status"
  bool create_only = false;  // one of that name stays as it is, whosever it is
  // Not empty: only while the object is of this version.
  std::string resource_version{};
};

struct Removal {
  kube::Resource resource;
  kube::ObjectKey key;
  std::string uid;  // of this very object, none that has its name later
};

struct Decision {
  std::vector<Change> applies;  // in this order
  std::vector<Removal> deletes;
  std::vector<kube::EventText> events;  // about the object itself
  std::optional<Duration> requeue_after;
};

// The chart's names, and what index Jobs are made of.
struct ReconcileSettings {
  std::string name = "optcache";
  std::string system_namespace = "optcache";
  std::string sidecar_image;
  std::string image_pull_policy = "IfNotPresent";
  std::vector<std::string> image_pull_secrets;
  // Resources, nodeSelector and tolerations of an index Job's pod; see ParseIndexPod.
  kube::Json index_pod = kube::Json::object();
  // More entries of `env`, of all containers that read sources.
  kube::Json source_variables = kube::Json::array();
};

inline constexpr const char* kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr const char* kManagedBy = "optcache";

}  // namespace optcache::reconcile
