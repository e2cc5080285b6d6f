#pragma once

// `optcache plan generate|import|export|show|stats`: plan files of OPT4TorchDataset.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddPlanCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
