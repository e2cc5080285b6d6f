#pragma once

#include "cli/terminal/action.h"

namespace optcache::cli {

// `optcache explain pod NAME`: why a pod of a cluster is as it is.
void AddExplainCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
