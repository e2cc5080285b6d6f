#include "cli/cluster_questions.h"

#include <optional>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "kube/object.h"

namespace optcache::cli {
namespace {

constexpr const char* kOurs = "--selector=app.kubernetes.io/name=optcache";
constexpr int kSidecarPort = 4103;

// Empty if it could not be had, and `notes` say so.
std::string AskOrNote(const Kubectl& kubectl, const std::vector<std::string>& arguments,
                      std::string_view what, std::vector<std::string>& notes) {
  Result<std::string> answer = kubectl.Run(arguments);
  if (answer) return *std::move(answer);
  notes.push_back(fmt::format("{} cannot be shown: {}", what, answer.error().message()));
  return "";
}

std::optional<std::string> AskIfAllowed(const Kubectl& kubectl,
                                        const std::vector<std::string>& arguments) {
  Result<std::string> answer = kubectl.Run(arguments);
  if (!answer) return std::nullopt;
  return *std::move(answer);
}

}  // namespace

void AddKubectlOptions(CLI::App& command, KubectlOptions& options) {
  command.add_option("--context", options.context, "Context of kubectl to use");
  command.add_option("--kubeconfig", options.kubeconfig, "File with the configuration of kubectl");
}

std::vector<std::string> AboutDataset(const kube::ObjectKey& dataset) {
  // One word, so that no annotation can be an option of kubectl.
  return {"get", "datasets.optcache.io/" + dataset.name, "--namespace=" + dataset.ns,
          "--ignore-not-found", "--output=json"};
}

std::vector<std::string> AboutNodePods() {
  return {"get", "pods", "--all-namespaces",
          std::string(kOurs) + ",app.kubernetes.io/component=node", "--output=json"};
}

std::vector<std::string> AboutInjectors() {
  return {"get", "mutatingwebhookconfigurations", kOurs, "--output=json"};
}

std::vector<std::string> AboutPage(const kube::ObjectKey& pod) {
  return {"get", "--raw",
          fmt::format("/api/v1/namespaces/{}/pods/{}:{}/proxy/metrics", pod.ns, pod.name,
                      kSidecarPort)};
}

Result<ClusterAnswers> AskCluster(const Kubectl& kubectl, const std::string& name_space) {
  Result<std::string> resources = kubectl.Run(
      {"get", "datasets.optcache.io,cacheplans.optcache.io",
       name_space.empty() ? "--all-namespaces" : "--namespace=" + name_space, "--output=json"});
  if (!resources && resources.error().message().contains("the server doesn't have a resource")) {
    return Error(
        Code::kNotFound,
        "optcache is not installed in this cluster: helm install optcache charts/optcache");
  }
  if (!resources) {
    Status error = std::move(resources).error();
    if (error.code() != Code::kPermissionDenied || !name_space.empty())
      return std::unexpected(error);
    return Error(error.code(), error.message() + "\nTry --namespace NAMESPACE: one that is yours");
  }
  ClusterAnswers answers{.resources = *std::move(resources)};
  answers.pods = AskOrNote(kubectl, {"get", "pods", "--all-namespaces", kOurs, "--output=json"},
                           "pods", answers.notes);
  for (const std::string& ns : OperatorNamespaces(answers.pods)) {
    answers.leases.push_back(AskOrNote(
        kubectl, {"get", "leases.coordination.k8s.io", "--namespace=" + ns, "--output=json"},
        "the leader", answers.notes));
  }
  return answers;
}

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
