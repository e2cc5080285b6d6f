#pragma once

// Looks for the least capacity that reaches the goal of a scene: simulates at some capacities.

#include "base/result.h"
#include "cli/simulate/simulate_scene.h"
#include "cli/simulate/simulate_until.h"

namespace optcache::cli {

// The scene has a goal. To `draw` a curve, more capacities are simulated.
Result<UntilReport> SearchUntil(const SimulateScene& scene, bool draw);

}  // namespace optcache::cli
