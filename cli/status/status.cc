#include "cli/status/status.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/cluster/cluster_questions.h"
#include "cli/local/coordinator_status.h"
#include "cli/local/sidecar_pages.h"
#include "cli/local/state_dir.h"
#include "cli/status/savings.h"
#include "cli/status/status_questions.h"
#include "cli/status/status_view.h"
#include "cli/terminal/print.h"
#include "cli/terminal/yaml_text.h"
#include "coordination/status.h"

namespace optcache::cli {
namespace {

constexpr const char* kTable = "table";

struct StatusRequest {
  std::string coordinator;
  std::string state_dir = DefaultStateDir();
  std::string output = kTable;
  bool cluster = false;
  std::string name_space;
  KubectlOptions kubectl;
};

Status PrintStatusJson(const std::string& output, const std::string& json) {
  return Print(output == "yaml" ? ToYaml(json) : json);
}

Status PrintClusterStatus(const StatusRequest& request) {
  ASSIGN_OR_RETURN(const ClusterAnswers answers,
                   AskCluster(Kubectl(request.kubectl), request.name_space));
  ASSIGN_OR_RETURN(const ClusterView view, ReadClusterView(answers));
  if (request.output == kTable) return Print(FormatClusterView(view));
  return PrintStatusJson(request.output, ToJson(view));
}

std::vector<std::string> PagesOf(const coordination::ClusterStatus& status) {
  std::vector<std::string> urls;
  for (const coordination::SidecarStatus& sidecar : status.sidecars) {
    if (!sidecar.metrics.empty()) urls.push_back(sidecar.metrics);
  }
  return urls;
}

Status PrintStatus(const StatusRequest& request) {
  if (request.cluster) return PrintClusterStatus(request);
  ASSIGN_OR_RETURN(const std::string url, FindCoordinator(request.coordinator, request.state_dir));
  ASSIGN_OR_RETURN(const std::string json, FetchStatus(url));
  ASSIGN_OR_RETURN(const coordination::ClusterStatus status,
                   coordination::ParseClusterStatus(json));
  const SidecarPages pages = AskSidecars(PagesOf(status));
  if (request.output == kTable) return Print(FormatStatus(status, FormatSavings(pages)));
  ASSIGN_OR_RETURN(const std::string with_savings, WithSavings(json, pages));
  return PrintStatusJson(request.output, with_savings);
}

}  // namespace

void AddStatusCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command =
      app.add_subcommand("status", "Show datasets, nodes and training jobs of a running cache");
  const bool is_plugin = app.get_name() == kPluginName;
  const auto request = std::make_shared<StatusRequest>();
  command->add_option("--coordinator", request->coordinator,
                      "Address of the coordinator, as unix:PATH; by default $OPTCACHE_COORDINATOR, "
                      "or else the coordinator of `optcache up`");
  command->add_option("--state", request->state_dir, "State folder of that `optcache up`")
      ->capture_default_str();
  command->add_option("--output,-o", request->output, "table, json or yaml")
      ->check(CLI::IsMember({kTable, "json", "yaml"}))
      ->capture_default_str();
  request->cluster = is_plugin;
  command->add_flag(
      "--cluster,!--local", request->cluster,
      "Show a Kubernetes cluster (the default of `kubectl optcache`), or this machine");
  command->add_option(
      "--namespace,-n", request->name_space,
      "In a cluster: show only the Datasets of this namespace; by default those of all namespaces");
  AddKubectlOptions(*command, request->kubectl);
  command->callback([request, &chosen] { chosen = [request] { return PrintStatus(*request); }; });
}

}  // namespace optcache::cli
