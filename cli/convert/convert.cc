#include "cli/convert/convert.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "cli/convert/dlcpod.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/print.h"
#include "config/configuration.h"

namespace optcache::cli {
namespace {

constexpr const char* kDlcpodMore =
    R"(Reads jobs of DLCache (apiVersion docgroup.com/v1alpha1, kind DLCPod) and prints resources that do the same with
optcache: a Dataset for each list of keys, and a Kubernetes Job whose pod asks for the Datasets. Comments in the output
say what you have to do, and name the fields that optcache does not need. The command contacts no cluster and changes
nothing.

A field that DLCache does not know is an error, with its line.

Examples:
  Convert a file, read the comments, apply:
    optcache convert dlcpod -f pod.yaml > job.yaml
    kubectl apply -f job.yaml
  Convert a job that is in a cluster, of a bucket in another region:
    kubectl get dlcpod imagenet -o yaml | optcache convert dlcpod -f - --region eu-west-1 > job.yaml)";

struct ConvertRequest {
  std::string file;
  std::string region;
};

Status PrintConverted(const ConvertRequest& request) {
  const std::string file = request.file == "-" ? "/dev/stdin" : request.file;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file, config::kMaxFileBytes));
  ASSIGN_OR_RETURN(const std::vector<config::DlcPod> pods, config::ParseDlcPods(text, file));
  auto documents = ConvertDlcPods(pods, request.region);
  if (!documents) return std::move(documents).error().WithContext(file);
  return Print(ToYaml(*documents));
}

}  // namespace

void AddConvertCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command =
      app.add_subcommand("convert", "Convert jobs of another cache to Datasets and Jobs");
  command->require_subcommand(1);
  CLI::App* const dlcpod =
      command->add_subcommand("dlcpod", "Convert jobs of DLCache, and print YAML");
  dlcpod->footer(kDlcpodMore);
  const auto request = std::make_shared<ConvertRequest>();
  dlcpod->add_option("--filename,-f", request->file, "File of DLCPods; - for standard input")
      ->required();
  dlcpod->add_option("--region", request->region,
                     "Region of the buckets; default: us-east-1, with a comment that says how to "
                     "find the region");
  Choose(*dlcpod, request, PrintConverted, chosen);
}

}  // namespace optcache::cli
