#pragma once

// The flags that say whether a subcommand is about a cache in a cluster or on this machine.

#include <string>

#include "base/result.h"
#include "cli/local/state_dir.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace optcache::cli {

struct CachePlace {
  bool cluster = false;
  std::string coordinator;  // empty: that of $OPTCACHE_COORDINATOR, else of `state_dir`
  std::string state_dir = DefaultStateDir();
};

// The address of the coordinator on this machine.
Result<std::string> FindCoordinator(const CachePlace& place);

// --cluster and --local, whose default is that of the program's name, --coordinator and --state.
void AddPlaceOptions(CLI::App& command, CachePlace& place);

}  // namespace optcache::cli
