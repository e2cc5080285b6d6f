#pragma once

// The resources of ours, as the API server names them.

#include "kube/resources.h"

namespace optcache::api {

inline constexpr kube::Resource kDatasets{
    .group = "optcache.io", .version = "v1alpha1", .kind = "Dataset", .plural = "datasets"};
inline constexpr kube::Resource kCachePlans{
    .group = "optcache.io", .version = "v1alpha1", .kind = "CachePlan", .plural = "cacheplans"};
inline constexpr kube::Resource kWarmups{
    .group = "optcache.io", .version = "v1alpha1", .kind = "Warmup", .plural = "warmups"};

// Of a Dataset. Its value is part of what an index Job is named by: another value indexes again.
inline constexpr const char* kReindexAnnotation = "optcache.io/reindex";

}  // namespace optcache::api
