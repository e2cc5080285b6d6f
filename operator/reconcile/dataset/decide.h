#pragma once

// What to do for one Dataset. Pure: same observation, same decision.

#include "operator/reconcile/dataset/observed.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

// Conditions: Ready, and why not: Indexed, SourceReachable, Placed, ManifestLost, Degraded; Invalid
// stands only on one that cannot be understood, for which nothing is done. The reasons are those of
// docs/user/troubleshooting.md. Events tell of changes of conditions.
Decision DecideDataset(const Observed& observed, const ReconcileSettings& settings);

}  // namespace optcache::reconcile
