#pragma once

// The jobs that read a Dataset, as its CachePlan shows them. Pure.

#include <vector>

#include "coordination/status.h"
#include "operator/reconcile/cacheplan/decide.h"

namespace optcache::reconcile {

// One for each name, of the streams that read its present manifest and of those that read one that
// it had before, in this order, names cut to what the status takes. Ranks of one
// stream may read two manifests while a Dataset is indexed again: those of the present one say how
// far it is. Of a stream that was begun again only its latest generation counts. Ranks that are not
// heard of do not count: a job of none may come back, or is forgotten.
std::vector<PlanJob> PlanJobsOf(const std::vector<coordination::StreamStatus>& streams,
                                const std::vector<coordination::StreamStatus>& of_earlier = {});

}  // namespace optcache::reconcile
