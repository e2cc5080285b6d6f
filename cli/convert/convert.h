#pragma once

// `optcache convert`: resources of ours from those of other caches.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddConvertCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
