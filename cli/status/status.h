#pragma once

// optcache status: datasets, nodes and streams of a running cache in one screen.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddStatusCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
