#pragma once

// The counters of a dataset by their names on /metrics (docs/metrics.md).

#include "base/counters.h"
#include "cache-node/serving/node_dataset.h"

namespace optcache::node {

// `retiring`: jobs still read this manifest, which is not its Dataset's any more.
void VisitDataset(const CounterVisitor& visit, const NodeDataset& dataset, bool retiring);

}  // namespace optcache::node
