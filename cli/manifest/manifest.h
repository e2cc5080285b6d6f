#pragma once

// `optcache manifest build|show|verify`: what a dataset consists of.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddManifestCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
