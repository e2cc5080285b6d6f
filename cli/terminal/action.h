#pragma once

// What a subcommand of the program `optcache` is. Its file declares
//
//   void AddOrderCommand(CLI::App& app, Action& chosen);
//
// which adds the subcommand with its options to `app` and, once the command line named it, puts
// what is to be done into `chosen`. program.cc parses, then runs it.

#include <functional>

#include "base/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace optcache::cli {

// The program's name when kubectl starts it.
inline constexpr const char* kPluginName = "kubectl optcache";

// Does the work; what it prints goes to standard output, why it failed into the Status.
using Action = std::function<Status()>;

}  // namespace optcache::cli
