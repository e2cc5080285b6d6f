#include "cli/status/status.h"

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/cluster/cluster_questions.h"
#include "cli/local/cache_place.h"
#include "cli/local/coordinator_status.h"
#include "cli/local/sidecar_pages.h"
#include "cli/status/savings.h"
#include "cli/status/status_questions.h"
#include "cli/status/status_view.h"
#include "cli/terminal/print.h"
#include "cli/terminal/yaml_text.h"

namespace optcache::cli {
namespace {

constexpr const char* kTable = "table";

struct StatusRequest {
  CachePlace place;
  std::string output = kTable;
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

Status PrintStatus(const StatusRequest& request) {
  if (request.place.cluster) return PrintClusterStatus(request);
  ASSIGN_OR_RETURN(const std::string url, FindCoordinator(request.place));
  ASSIGN_OR_RETURN(const CoordinatorAnswer answer, AskCoordinator(url));
  const SidecarPages pages = AskSidecars(SidecarUrls(answer.status));
  if (request.output == kTable) return Print(FormatStatus(answer.status, FormatSavings(pages)));
  ASSIGN_OR_RETURN(const std::string with_savings, WithSavings(answer.json, pages));
  return PrintStatusJson(request.output, with_savings);
}

}  // namespace

void AddStatusCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command =
      app.add_subcommand("status", "Show datasets, nodes and training jobs of a running cache");
  const auto request = std::make_shared<StatusRequest>();
  AddPlaceOptions(*command, request->place);
  command->add_option("--output,-o", request->output, "table, json or yaml")
      ->check(CLI::IsMember({kTable, "json", "yaml"}))
      ->capture_default_str();
  command->add_option(
      "--namespace,-n", request->name_space,
      "In a cluster: show only the Datasets of this namespace; by default those of all namespaces");
  AddKubectlOptions(*command, request->kubectl);
  command->callback([request, &chosen] { chosen = [request] { return PrintStatus(*request); }; });
}

}  // namespace optcache::cli
