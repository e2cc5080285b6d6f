// optcache: the program for people. Each verb is one file of this folder.

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/dashboard/render.h"
#include "cli/dataset_usage.h"
#include "cli/explain.h"
#include "cli/headspace.h"
#include "cli/manifest.h"
#include "cli/order.h"
#include "cli/plan.h"
#include "cli/rollout.h"
#include "cli/simulate.h"
#include "cli/status.h"
#include "cli/up.h"
#include "cli/verb.h"
#include "cli/warmup.h"

namespace optcache::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kUsageError = 2;

// The verbs, in the order in which --help lists them.
constexpr void (*kCommands[])(CLI::App& app, Verb& chosen) = {
    AddUpCommand,     AddStatusCommand,   AddExplainCommand,   AddDatasetsCommand,
    AddWarmupCommand, AddRolloutCommand,  AddManifestCommand,  AddOrderCommand,
    AddPlanCommand,   AddSimulateCommand, AddHeadspaceCommand, AddDashboardCommand,
};

std::string UsageMessage(const CLI::App* app, const CLI::Error& error) {
  std::string command = app->get_name();
  for (auto chosen = app->get_subcommands(); !chosen.empty();
       chosen = chosen.front()->get_subcommands()) {
    command += " " + chosen.front()->get_name();
  }
  std::string what = error.what();
  // A verb without its second word: the one that is there is none that it knows.
  const std::vector<std::string> unknown = app->remaining(/*recurse=*/true);
  if (what == "A subcommand is required" && !unknown.empty())
    what = "'" + unknown.front() + "' is not known";
  return "optcache: " + what + "\nSee '" + command + " --help' for usage.\n";
}

int ParseAndRun(int argc, char** argv) {
  const std::string_view called = argc > 0 ? argv[0] : "";
  const bool is_plugin = called.substr(called.rfind('/') + 1).starts_with("kubectl-");
  CLI::App app("optcache: a cache for training data that knows what comes next",
               is_plugin ? kPluginName : "optcache");
  app.footer("Run `optcache COMMAND --help` for the options and examples of a command.");
  app.set_version_flag("--version", "optcache " OPTCACHE_VERSION);
  app.failure_message(UsageMessage);
  Verb chosen;
  for (const auto& add_command : kCommands)
    add_command(app, chosen);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;  // --help and --version end here too
  }
  if (!chosen) {
    std::fputs(app.help().c_str(), stderr);
    return kUsageError;
  }
  const Status status = chosen();
  if (status.ok()) return 0;
  std::fprintf(stderr, "optcache: %s\n", status.message().c_str());
  return kFailed;
}

}  // namespace
}  // namespace optcache::cli

int main(int argc, char** argv) {
  try {
    return optcache::cli::ParseAndRun(argc, argv);
  } catch (const std::exception& error) {  // out of memory, or a mistake in a command's declaration
    std::fprintf(stderr, "optcache: %s\n", error.what());
    return optcache::cli::kFailed;
  }
}
