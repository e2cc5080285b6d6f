#pragma once

// `optcache plan generate|import|export|show|stats`: plan files of OPT4TorchDataset.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddPlanCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
