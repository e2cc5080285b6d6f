#pragma once

// `optcache convert`: resources of ours from those of other caches.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddConvertCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
