#pragma once

// `optcache simulate`: what each policy would read from the store.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddSimulateCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
