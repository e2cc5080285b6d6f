// optcache: the command line. One line a verb.

#include <array>

#include <CLI/CLI.hpp>

#include "cli/simulate.h"

namespace {

using AddCommand = void (*)(CLI::App& app, int& exit_code);

constexpr std::array<AddCommand, 1> kCommands = {
    optcache::cli::AddSimulateCommand,
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A distributed cache for training data that knows what comes next", "optcache");
  app.require_subcommand(1);
  int exit_code = 0;
  for (const AddCommand add : kCommands)
    add(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
