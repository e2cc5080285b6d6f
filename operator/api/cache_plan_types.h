#pragma once

// A CachePlan as the operator reads it: manifests/crds/cacheplans.yaml in C++. What says how a
// change is rolled out is checked by the API server alone: every change comes into force at once,
// on all nodes, at the cut that the coordinator chooses.

#include <string>

#include "base/result.h"
#include "coordination/state.h"
#include "kube/object.h"
#include "kube/resources.h"

namespace optcache::api {

inline constexpr kube::Resource kCachePlans{
    .group = "optcache.io", .version = "v1alpha1", .kind = "CachePlan", .plural = "cacheplans"};

struct CachePlanSpec {
  std::string dataset;  // of the same namespace
  coordination::Retention retention = coordination::Retention::kOptimal;
  coordination::Objective objective = coordination::Objective::kBytes;
  friend bool operator==(const CachePlanSpec&, const CachePlanSpec&) = default;
};

// kInvalidArgument lists every fault with its field.
Result<CachePlanSpec> ParseCachePlanSpec(const kube::Json& object);

}  // namespace optcache::api
