#pragma once

// optcache up: a whole cache on one machine.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddUpCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
