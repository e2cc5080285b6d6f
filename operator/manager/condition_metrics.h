#pragma once

// The conditions of Datasets as a metric, so that alerts need nothing else than our own pages.

#include <cstddef>
#include <string>

#include "base/counters.h"
#include "kube/object_cache.h"

namespace optcache::manager {

inline constexpr std::size_t kMaxDatasetsShown = 1024;

// One gauge of value 1 for each condition, with its status. Of the first 1,024 Datasets by name: a
// Dataset has at most 16 conditions, as its CRD says.
void VisitConditions(const kube::ObjectCache& datasets, const CounterVisitor& visitor);

// Those of one object, under the name of a metric.
void VisitConditions(const char* metric, const std::string& dataset, const kube::Json& object,
                     const CounterVisitor& visitor);

}  // namespace optcache::manager
