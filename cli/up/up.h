#pragma once

// optcache up: a whole cache on one machine.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddUpCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
