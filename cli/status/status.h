#pragma once

// optcache status: datasets, nodes and streams of a running cache in one screen.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddStatusCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
