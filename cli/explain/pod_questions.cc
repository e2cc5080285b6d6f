#include "cli/explain/pod_questions.h"

#include <optional>
#include <utility>
#include <vector>

#include "cli/cluster/cluster_questions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

std::optional<std::string> AskIfAllowed(const Kubectl& kubectl,
                                        const std::vector<std::string>& arguments) {
  Result<std::string> answer = kubectl.Run(arguments);
  if (!answer) return std::nullopt;
  return *std::move(answer);
}

}  // namespace

Result<PodAnswers> AskAboutPod(const Kubectl& kubectl, const std::string& name_space,
                               const std::string& pod) {
  std::vector<std::string> get_pod = {"get", "pod", pod, "--output=json"};
  if (!name_space.empty()) get_pod.push_back("--namespace=" + name_space);
  PodAnswers answers;
  ASSIGN_OR_RETURN(answers.pod, kubectl.Run(get_pod));
  for (const kube::ObjectKey& dataset : DatasetsOfPod(answers.pod)) {
    answers.datasets.push_back(
        {.name = dataset.ToString(), .json = AskIfAllowed(kubectl, AboutDataset(dataset))});
  }
  answers.node_pods = AskIfAllowed(kubectl, AboutNodePods());
  answers.injectors = AskIfAllowed(kubectl, AboutInjectors());
  const kube::Json parsed = kube::Json::parse(answers.pod, nullptr, /*allow_exceptions=*/false);
  answers.metrics = AskIfAllowed(kubectl, AboutPage({.ns = kube::KeyOf(parsed).ns, .name = pod}));
  return answers;
}

}  // namespace optcache::cli
