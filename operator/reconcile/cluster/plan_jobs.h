#pragma once

// The jobs that read a Dataset, as its CachePlan shows them. Pure.

#include <vector>

#include "coordination/status.h"
#include "operator/reconcile/cacheplan/decide.h"

namespace optcache::reconcile {

// One for each name, in the order of `streams`, names cut to what the status takes. Ranks of one
// stream may read two manifests while a Dataset is indexed again: those of the first manifest in
// `streams` say how far it is. Of a stream that was begun again only its latest life counts. Ranks
// that are not heard of do not count: a job of none may come back, or is forgotten.
std::vector<PlanJob> PlanJobsOf(const std::vector<coordination::StreamStatus>& streams);

}  // namespace optcache::reconcile
