#include "cli/up/up.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "cli/up/local_cluster.h"
#include "net/stop_signals.h"

namespace optcache::cli {
namespace {

constexpr const char* kUpMore =
    R"(Runs the coordinator, and for each machine a node and a sidecar, as processes of this machine. Training
processes find their sidecar by OPTCACHE_SOCKET: paste the line that is printed into their shell. Ctrl-C stops
everything. If `optcache up` is killed, nodes and sidecars continue. The next `optcache up` with the same --state
ends them and starts others in their place.

Examples:
  optcache up -f manifests/samples/images.yaml
  Start two machines of 2 GiB each, to see samples move between them:
    optcache up -f images.yaml --machines 2 --memory 2Gi)";

constexpr std::uint32_t kMachinesMax = 64;

void Say(const std::string& line) {
  fmt::print("{}\n", Visible(line));
  std::fflush(stdout);
}

Status Up(const LocalOptions& options) {
  ASSIGN_OR_RETURN(const StateDir state, StateDir::Open(options.state_dir, "optcache up"));
  // Indexing may take long: Ctrl-C just ends it.
  ASSIGN_OR_RETURN(std::vector<ReadyDataset> datasets, SetUpDatasets(options, state, Say));
  RaiseOpenFilesLimit();
  net::BlockStopSignals();
  LocalCluster cluster(state, std::move(datasets), STDOUT_FILENO);
  RETURN_IF_ERROR(cluster.Start(options));
  return cluster.Run();
}

}  // namespace

void AddUpCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command = app.add_subcommand("up", "Run a whole cache on this machine");
  command->footer(kUpMore);
  const auto options = std::make_shared<LocalOptions>();
  command->add_option("--machines", options->machines, "Number of machines to simulate")
      ->check(CLI::Range(1U, kMachinesMax))
      ->capture_default_str();
  AddLocalOptions(*command, *options);
  CLI::Option* const s3 = command->add_flag("--s3-endpoint", options->s3,
                                            "Serve the datasets by S3, too, for training code that "
                                            "is not changed, and print the line to export");
  command
      ->add_option("--sampler", options->samplers,
                   "Order in which clients of S3 read the dataset NAME, for example "
                   "images=torch-distributed,seed=0,world=2,ranks=1, where each machine runs 1 of "
                   "the 2 ranks")
      ->needs(s3)
      ->allow_extra_args(false)
      ->type_name("NAME=SAMPLER");
  command->callback([options, &chosen] { chosen = [options] { return Up(*options); }; });
}

}  // namespace optcache::cli
