#include "cli/local/cache_place.h"

#include <CLI/CLI.hpp>

#include "cli/terminal/action.h"

namespace optcache::cli {

Result<std::string> FindCoordinator(const CachePlace& place) {
  return FindCoordinator(place.coordinator, place.state_dir);
}

void AddPlaceOptions(CLI::App& command, CachePlace& place) {
  const CLI::App* program = &command;
  while (program->get_parent() != nullptr)
    program = program->get_parent();
  place.cluster = program->get_name() == kPluginName;
  command.add_flag("--cluster,!--local", place.cluster,
                   "Use a cache in a Kubernetes cluster (the default of `kubectl optcache`), or on "
                   "this machine");
  command.add_option("--coordinator", place.coordinator,
                     "On this machine: address of the coordinator, as unix:PATH; default: "
                     "$OPTCACHE_COORDINATOR, or else the coordinator of `optcache up`");
  command
      .add_option("--state", place.state_dir, "On this machine: state folder of that `optcache up`")
      ->capture_default_str();
}

}  // namespace optcache::cli
