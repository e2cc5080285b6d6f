#pragma once

// The verbs' way to a cluster: kubectl's options on the command line, and what is asked of it.

#include <functional>
#include <string>
#include <vector>

#include "cli/cluster_view.h"
#include "cli/kubectl.h"
#include "cli/pod_story.h"
#include "kube/object.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace optcache::cli {

// --context and --kubeconfig.
void AddKubectlOptions(CLI::App& command, KubectlOptions& options);

// What kubectl is asked, in its words: one Dataset (nothing if there is none), our node pods, our
// injectors, and the page of metrics of a pod's sidecar.
std::vector<std::string> AboutDataset(const kube::ObjectKey& dataset);
std::vector<std::string> AboutNodePods();
std::vector<std::string> AboutInjectors();
std::vector<std::string> AboutPage(const kube::ObjectKey& pod);

// Asks for what ClusterView shows, with the Datasets of one namespace (empty: of all). Only these
// are needed; what else is forbidden becomes a note. kNotFound says that optcache is not installed
// there.
Result<ClusterAnswers> AskCluster(const Kubectl& kubectl, const std::string& name_space);

// `pod` in `name_space` (empty: kubectl's own).
Result<PodAnswers> AskAboutPod(const Kubectl& kubectl, const std::string& name_space,
                               const std::string& pod);

}  // namespace optcache::cli
