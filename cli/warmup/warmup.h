#pragma once

// warmup: puts a dataset's samples into the nodes before a job reads them.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddWarmupCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
