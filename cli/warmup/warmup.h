#pragma once

// warmup: puts a dataset's samples into the nodes before a job reads them.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddWarmupCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
