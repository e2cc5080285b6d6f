#pragma once

// optcache headspace: how much faster a training job could get, measured on this machine.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddHeadspaceCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
