#include "cli/simulate.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/simulate_report.h"
#include "plan/simulate.h"

namespace optcache::cli {
namespace {

struct Flags {
  plan::SimulateOptions options;
  std::vector<std::string> policies{"optimal", "pin", "lru", "min", "none"};
  std::string output = "table";
};

Result<SimulateReport> Run(const Flags& flags) {
  SimulateReport report;
  report.bound = plan::StoreReadBound(flags.options);
  for (const std::string& name : flags.policies) {
    const auto policy = plan::PolicyFromName(name);
    if (!policy) {
      return Error(Code::kInvalidArgument,
                   "policies: " + name + "; there are optimal, pin, lru, min, none");
    }
    ASSIGN_OR_RETURN(plan::PolicyResult result, plan::Simulate(flags.options, *policy));
    report.lines.push_back({.policy = *policy, .result = result});
  }
  return report;
}

Status Print(const Flags& flags) {
  ASSIGN_OR_RETURN(const SimulateReport report, Run(flags));
  const std::string text = flags.output == "json" ? ReportAsJson(report) : ReportAsTable(report);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return ErrnoStatus(errno, "cannot write to standard output");
  }
  return OkStatus();
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Verb& chosen) {
  // Shared by the options, which write it, and the callback, which reads it: both live in `app`.
  const auto flags = std::make_shared<Flags>();
  flags->options = {
      .samples = 100'000, .epochs = 12, .nodes = 4, .jobs = 1, .capacity = 0.3, .seed = 0};
  plan::SimulateOptions& options = flags->options;
  CLI::App* command = app.add_subcommand(
      "simulate", "What each policy would read from the store, for shuffling jobs");
  command->add_option("--samples", options.samples, "Samples in the dataset")
      ->capture_default_str();
  command->add_option("--epochs", options.epochs, "Epochs of each job")->capture_default_str();
  command->add_option("--nodes", options.nodes, "Cache nodes, with one rank of each job on each")
      ->capture_default_str();
  command->add_option("--jobs", options.jobs, "Jobs that read the dataset at one speed")
      ->capture_default_str();
  command->add_option("--capacity", options.capacity, "Of all nodes, as a share of the dataset")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Of the jobs' orders")->capture_default_str();
  command->add_option("--policies", flags->policies, "By comma: optimal, pin, lru, min, none")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--output", flags->output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([flags, &chosen] { chosen = [flags] { return Print(*flags); }; });
}

}  // namespace optcache::cli
