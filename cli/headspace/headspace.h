#pragma once

// optcache headspace: how much faster a training job could get, measured on this machine.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddHeadspaceCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
