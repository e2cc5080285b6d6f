#pragma once

#include "cli/terminal/verb.h"

namespace optcache::cli {

// `optcache explain pod NAME`: why a pod of a cluster is as it is.
void AddExplainCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
