#pragma once

#include "cli/terminal/action.h"

namespace optcache::cli {

// rollout status|history|pause|resume|undo|restart: a change of a CachePlan on its way to the
// nodes.
void AddRolloutCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
