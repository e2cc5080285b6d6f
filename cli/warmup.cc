#include "cli/warmup.h"

#include <unistd.h>

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/duration_text.h"
#include "cli/choose.h"
#include "cli/cluster_questions.h"
#include "cli/duration_text.h"
#include "cli/state_dir.h"
#include "cli/warmup_cluster.h"
#include "cli/warmup_local.h"

namespace optcache::cli {
namespace {

constexpr const char* kWarmupMore =
    R"(Reads what the nodes have room for from the store, once, and leaves it in their memory. What is there already is
not read again: a warm-up that was stopped goes on where it was. Where the CachePlan names a job, its first epoch
says what comes first; docs/user/warmup.md tells more.

Examples:
  Of an `optcache up` on this machine:
    optcache warmup images --bandwidth 100Mi
  In a cluster, where it becomes a Warmup:
    kubectl optcache warmup images -n vision --bandwidth 500Mi --wait
    kubectl optcache warmup images --when OnIndexed --name images-fresh)";

struct WarmupFlags {
  std::string dataset;
  std::string bandwidth;
  std::string coordinator;
  std::string state_dir = DefaultStateDir();
  std::string output = "text";
  bool cluster = false;
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
      .dataset = flags.dataset, .state_dir = flags.state_dir, .output = flags.output};
  if (!flags.bandwidth.empty()) {
    Result<ByteCount> bandwidth = ParseQuantity(flags.bandwidth);
    if (!bandwidth) return std::move(bandwidth).error().WithContext("--bandwidth");
    warmup.bandwidth = *bandwidth;
    if (warmup.bandwidth == 0)
      return {Code::kInvalidArgument, "--bandwidth 0: allowed: above 0, for example 100Mi"};
  }
  if (flags.cluster) return WarmThere(flags);
  ASSIGN_OR_RETURN(warmup.coordinator, FindCoordinator(flags.coordinator, flags.state_dir));
  return WarmHere(warmup);
}

void AddClusterFlags(CLI::App& command, WarmupFlags& flags) {
  command.add_flag("--cluster,!--local", flags.cluster,
                   "In a Kubernetes cluster (the default of `kubectl optcache`), or here");
  command.add_option("--namespace,-n", flags.name_space,
                     "Of a cluster: the Dataset's; default: kubectl's own");
  command.add_option("--name", flags.name,
                     "Of the Warmup; default: the Dataset's and five letters");
  command
      .add_option("--when", flags.when, "Once, or OnIndexed: again with each new list of samples")
      ->check(CLI::IsMember({"Once", "OnIndexed"}))
      ->capture_default_str();
  command
      .add_option("--ttl", flags.ttl, "How long after its end a Warmup that runs once is deleted")
      ->check(CLI::Validator(MustBeDuration, ""))
      ->capture_default_str();
  command.add_flag("--wait,-w", flags.wait, "Show how far it is until it has ended");
  command
      .add_option("--timeout", flags.timeout, "Wait no longer: 90s, 30m; 0: as long as it takes")
      ->check(CLI::Validator(MustBeDuration, ""))
      ->capture_default_str();
  AddKubectlOptions(command, flags.kubectl);
}

}  // namespace

void AddWarmupCommand(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand(
      "warmup", "Put a dataset's samples into the nodes before a job reads them");
  command->footer(kWarmupMore);
  const auto flags = std::make_shared<WarmupFlags>();
  command->add_option("dataset", flags->dataset, "Its name")->required()->type_name("NAME");
  command
      ->add_option("--bandwidth", flags->bandwidth,
                   "Bytes a second that are read of the store, at most; default: no limit")
      ->type_name("BYTES");
  command->add_option("--coordinator", flags->coordinator,
                      "Address of the coordinator, unix:PATH; default: $OPTCACHE_COORDINATOR, "
                      "else the one that `optcache up` runs");
  command->add_option("--state", flags->state_dir, "Folder of that `optcache up`")
      ->capture_default_str();
  command->add_option("--output,-o", flags->output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  AddClusterFlags(*command, *flags);
  flags->cluster = app.get_name() == kPluginName;
  Choose(*command, flags, Warmup, chosen);
}

}  // namespace optcache::cli
