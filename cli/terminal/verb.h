#pragma once

// What a verb of the program `optcache` is. A verb's file declares
//
//   void AddOrderCommand(CLI::App& app, Verb& chosen);
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
using Verb = std::function<Status()>;

}  // namespace optcache::cli
