#include "cli/cluster/cluster_questions.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "kube/object.h"

namespace optcache::cli {
namespace {

constexpr int kSidecarPort = 4103;

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
          std::string(kOurObjects) + ",app.kubernetes.io/component=node", "--output=json"};
}

std::vector<std::string> AboutInjectors() {
  return {"get", "mutatingwebhookconfigurations", kOurObjects, "--output=json"};
}

std::vector<std::string> AboutPage(const kube::ObjectKey& pod) {
  return {"get", "--raw",
          fmt::format("/api/v1/namespaces/{}/pods/{}:{}/proxy/metrics", pod.ns, pod.name,
                      kSidecarPort)};
}

bool SaysMissing(const Status& error) {
  // As `kubectl get` says it, and `kubectl create` and `apply`, of which a file may have kinds of
  // others.
  return error.message().contains("the server doesn't have a resource") ||
         (error.message().contains("no matches for kind") &&
          error.message().contains("in version \"optcache.io/"));
}

Status ExplainMissing(Status error) {
  if (!SaysMissing(error)) return error;
  return {Code::kNotFound,
          "optcache is not installed in this cluster, or in a version that is too old for this: "
          "helm upgrade --install optcache charts/optcache"};
}

}  // namespace optcache::cli
