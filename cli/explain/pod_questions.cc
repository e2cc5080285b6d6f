#include "cli/explain/pod_questions.h"

#include <optional>
#include <utility>
#include <vector>

#include "cli/cluster/cluster_questions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

std::optional<std::string> IfAllowed(Result<std::string> answer) {
  if (!answer) return std::nullopt;
  return *std::move(answer);
}

// Of a pod that names no Dataset, nothing else would tell.
Status CheckInstalled(const Kubectl& kubectl, const std::string& name_space) {
  const Result<std::string> names =
      kubectl.Run({"get", "datasets.optcache.io", "--namespace=" + name_space, "--output=name"});
  return !names && SaysMissing(names.error()) ? ExplainMissing(names.error()) : OkStatus();
}

}  // namespace

Result<PodAnswers> AskAboutPod(const Kubectl& kubectl, const std::string& name_space,
                               const std::string& pod) {
  std::vector<std::string> get_pod = {"get", "pod", pod, "--output=json"};
  if (!name_space.empty()) get_pod.push_back("--namespace=" + name_space);
  PodAnswers answers;
  ASSIGN_OR_RETURN(answers.pod, kubectl.Run(get_pod));
  const kube::Json parsed = kube::Json::parse(answers.pod, nullptr, /*allow_exceptions=*/false);
  const kube::ObjectKey key = kube::KeyOf(parsed);
  const std::vector<kube::ObjectKey> datasets = DatasetsOfPod(answers.pod);
  if (datasets.empty()) RETURN_IF_ERROR(CheckInstalled(kubectl, key.ns));
  for (const kube::ObjectKey& dataset : datasets) {
    Result<std::string> json = kubectl.Run(AboutDataset(dataset));
    if (!json && SaysMissing(json.error())) return std::unexpected(ExplainMissing(json.error()));
    answers.datasets.push_back({.name = dataset.ToString(), .json = IfAllowed(std::move(json))});
  }
  answers.node_pods = IfAllowed(kubectl.Run(AboutNodePods()));
  answers.injectors = IfAllowed(kubectl.Run(AboutInjectors()));
  answers.metrics = IfAllowed(kubectl.Run(AboutPage({.ns = key.ns, .name = pod})));
  return answers;
}

}  // namespace optcache::cli
