#pragma once

// `optcache manifest build|show|verify`: what a dataset consists of.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddManifestCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
