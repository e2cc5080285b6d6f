// Parses the command line and runs the subcommand that it names, in the manners of the name by
// which it was called.
//
// Each subcommand adds itself and puts what is to be done into `chosen`; so parsing has no
// effects, and one place turns errors into an exit status. As kubectl's plugin it prints and ends
// as kubectl does. The parser throws; its exceptions end here.

#include "cli/program.h"

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/utf8.h"
#include "cli/convert/convert.h"
#include "cli/dashboard/render.h"
#include "cli/datasets/dataset_usage.h"
#include "cli/doctor/doctor.h"
#include "cli/explain/explain.h"
#include "cli/headspace/headspace.h"
#include "cli/manifest/manifest.h"
#include "cli/order/order.h"
#include "cli/plan/plan.h"
#include "cli/rollout/rollout.h"
#include "cli/simulate/simulate.h"
#include "cli/status/status.h"
#include "cli/terminal/action.h"
#include "cli/up/up.h"
#include "cli/warmup/warmup.h"

namespace optcache::cli {
namespace {

constexpr int kFailed = 1;

// How the program speaks under one of its names.
struct Manners {
  const char* name;
  const char* error_prefix;
  int usage_error;
  bool helps_without_command;  // on standard output
};

constexpr Manners kOwnManners = {.name = "optcache",
                                 .error_prefix = "optcache: ",
                                 .usage_error = 2,
                                 .helps_without_command = false};
// Scripts that wait with `kubectl rollout status` wait with the plugin in the same way.
constexpr Manners kKubectlManners = {.name = kPluginName,
                                     .error_prefix = "error: ",
                                     .usage_error = kFailed,
                                     .helps_without_command = true};

// The subcommands, in the order in which --help lists them.
constexpr void (*kCommands[])(CLI::App& app, Action& chosen) = {
    AddUpCommand,      AddStatusCommand,   AddExplainCommand,   AddDatasetsCommand,
    AddWarmupCommand,  AddRolloutCommand,  AddManifestCommand,  AddOrderCommand,
    AddPlanCommand,    AddSimulateCommand, AddHeadspaceCommand, AddDashboardCommand,
    AddConvertCommand, AddDoctorCommand,
};

Manners MannersOf(std::string_view called) {
  const std::string_view file = called.substr(called.rfind('/') + 1);
  return file.starts_with("kubectl-") ? kKubectlManners : kOwnManners;
}

// The command line as far as it names commands.
struct NamedCommand {
  std::string words;
  bool is_group;  // and one of its commands is missing
};

NamedCommand NamedBy(const CLI::App& app) {
  const CLI::App* last = &app;
  std::string words = app.get_name();
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    words += " " + last->get_name();
  }
  return {.words = words, .is_group = !last->get_subcommands({}).empty()};
}

std::string UsageMessage(const CLI::App& app, const NamedCommand& command,
                         const CLI::Error& error) {
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  const bool is_of_word =
      command.is_group || error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  std::string what = error.what();
  if (is_of_word && !unknown.empty()) {
    const std::string& word = unknown.front();
    if (word.starts_with('-')) {
      what = "unknown flag: " + word;
    } else if (command.is_group) {
      what = fmt::format("unknown command \"{}\"", fmt::join(unknown, " "));
    }
  }
  return what + "\nSee '" + command.words + " --help' for usage.";
}

// kubectl prints what the API server says without a prefix.
void PrintError(const Manners& manners, const std::string& message) {
  const bool is_server = message.starts_with("Error from server");
  std::fprintf(stderr, "%s%s\n", is_server ? "" : manners.error_prefix,
               Visible(message, "\n").c_str());
}

int ParseAndRun(int count, const char* const* arguments, const char* version,
                const Manners& manners) {
  CLI::App app("optcache: a cache for training data that knows what comes next", manners.name);
  app.footer("Run `optcache COMMAND --help` for the options and examples of a command.");
  app.set_version_flag("--version", std::string("optcache ") + version);
  Action chosen;
  for (const auto& add_command : kCommands)
    add_command(app, chosen);

  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const NamedCommand command = NamedBy(app);
    const bool lacks_command = command.is_group && app.remaining(/*recurse=*/true).empty();
    if (lacks_command && manners.helps_without_command) {
      std::fputs(app.help().c_str(), stdout);
      return kFailed;
    }
    PrintError(manners, UsageMessage(app, command, error));
    return manners.usage_error;
  }
  if (!chosen) {
    std::fputs(app.help().c_str(), manners.helps_without_command ? stdout : stderr);
    return manners.helps_without_command ? 0 : manners.usage_error;
  }
  const Status status = chosen();
  if (status.ok()) return 0;
  PrintError(manners, status.message());
  return kFailed;
}

}  // namespace

int RunProgram(int count, const char* const* arguments, const char* version) {
  const Manners manners = MannersOf(count > 0 ? arguments[0] : "");
  try {
    return ParseAndRun(count, arguments, version, manners);
  } catch (const std::bad_alloc&) {
    PrintError(manners, "there is not enough memory for this");
    return kFailed;
  } catch (const std::exception& error) {  // a mistake in a command's declaration
    PrintError(manners, error.what());
    return kFailed;
  }
}

}  // namespace optcache::cli
