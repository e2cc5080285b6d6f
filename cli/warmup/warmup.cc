#include "cli/warmup/warmup.h"

#include <unistd.h>

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "cli/cluster/cluster_questions.h"
#include "cli/local/cache_place.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/duration_text.h"
#include "cli/warmup/warmup_cluster.h"
#include "cli/warmup/warmup_local.h"

namespace optcache::cli {
namespace {

constexpr const char* kWarmupMore =
    R"(Reads as many samples from the store as the nodes have room for, each of them once, and leaves them in the nodes'
memory. Samples that are there already are not read again, so a warm-up that was stopped continues where it was. If
the CachePlan names a job, samples are read in the order of its first epoch. docs/user/warmup.md has the details.

Examples:
  Warm the nodes of an `optcache up` on this machine:
    optcache warmup images --bandwidth 100Mi
  Create a Warmup in a cluster:
    kubectl optcache warmup images -n vision --bandwidth 500Mi --wait
    kubectl optcache warmup images --when OnIndexed --name images-fresh)";

struct WarmupFlags {
  std::string dataset;
  std::string bandwidth;
  CachePlace place;
  std::string output = "text";
  KubectlOptions kubectl;
  std::string name_space;
  std::string name;
  std::string when = "Once";
  std::string ttl = "24h";
  bool wait = false;
  std::string timeout = "0";
};

Status WarmThere(const WarmupFlags& flags) {
  ClusterWarmup warmup{.dataset = flags.dataset,
                       .name = flags.name,
                       .name_space = flags.name_space,
                       .bandwidth = flags.bandwidth,
                       .on_indexed = flags.when == "OnIndexed",
                       .wait = flags.wait,
                       .output = flags.output};
  if (!flags.ttl.empty()) {
    ASSIGN_OR_RETURN(warmup.ttl, ParseDuration(flags.ttl));
  }
  ASSIGN_OR_RETURN(warmup.timeout, ParseDuration(flags.timeout));
  return WarmInCluster(Kubectl(flags.kubectl), warmup, STDERR_FILENO);
}

Status Warmup(const WarmupFlags& flags) {
  LocalWarmup warmup{
      .dataset = flags.dataset, .state_dir = flags.place.state_dir, .output = flags.output};
  if (!flags.bandwidth.empty()) {
    Result<ByteCount> bandwidth = ParseQuantity(flags.bandwidth);
    if (!bandwidth) return std::move(bandwidth).error().WithContext("--bandwidth");
    warmup.bandwidth = *bandwidth;
    if (warmup.bandwidth == 0)
      return {Code::kInvalidArgument, "--bandwidth 0: allowed: above 0, for example 100Mi"};
  }
  if (flags.place.cluster) return WarmThere(flags);
  ASSIGN_OR_RETURN(warmup.coordinator, FindCoordinator(flags.place));
  return WarmHere(warmup);
}

void AddClusterFlags(CLI::App& command, WarmupFlags& flags) {
  command.add_option("--namespace,-n", flags.name_space,
                     "In a cluster: namespace of the Dataset; default: that of kubectl's context");
  command.add_option(
      "--name", flags.name,
      "In a cluster: name of the Warmup; default: the name of the Dataset and five letters");
  command
      .add_option("--when", flags.when,
                  "Once, or OnIndexed, which warms again whenever the Dataset has been indexed")
      ->check(CLI::IsMember({"Once", "OnIndexed"}))
      ->capture_default_str();
  command
      .add_option("--ttl", flags.ttl,
                  "Time after which a Warmup that runs once is deleted when it has ended")
      ->check(CLI::Validator(MustBeDuration, ""))
      ->capture_default_str();
  command.add_flag("--wait,-w", flags.wait,
                   "Wait until the Warmup has ended, and show its progress");
  command
      .add_option("--timeout", flags.timeout, "Time to wait, for example 90s or 30m; 0: no limit")
      ->check(CLI::Validator(MustBeDuration, ""))
      ->capture_default_str();
  AddKubectlOptions(command, flags.kubectl);
}

}  // namespace

void AddWarmupCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command = app.add_subcommand(
      "warmup", "Put a dataset's samples into the nodes before a job reads them");
  command->footer(kWarmupMore);
  const auto flags = std::make_shared<WarmupFlags>();
  command->add_option("dataset", flags->dataset, "Name of the Dataset")
      ->required()
      ->type_name("NAME");
  command
      ->add_option("--bandwidth", flags->bandwidth,
                   "Most bytes a second to read from the store; default: no limit")
      ->type_name("BYTES");
  AddPlaceOptions(*command, flags->place);
  command->add_option("--output,-o", flags->output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  AddClusterFlags(*command, *flags);
  Choose(*command, flags, Warmup, chosen);
}

}  // namespace optcache::cli
