#pragma once

// `optcache simulate`: what each policy would read from the store.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddSimulateCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
