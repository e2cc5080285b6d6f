#pragma once

#include "cli/terminal/action.h"

namespace optcache::cli {

// `optcache explain dataset|job|pod NAME`: why it is not served or slow.
void AddExplainCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
