#pragma once

// The subcommands' way to a cluster: kubectl's options on the command line, and what is asked of
// it.

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/cluster/kubectl.h"
#include "kube/object.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace optcache::cli {

// Selects the objects that optcache made.
inline constexpr const char* kOurObjects = "--selector=app.kubernetes.io/name=optcache";

// --context and --kubeconfig.
void AddKubectlOptions(CLI::App& command, KubectlOptions& options);

// What kubectl is asked, in its words: one Dataset (nothing if there is none), our node pods, our
// injectors, and the page of metrics of a pod's sidecar.
std::vector<std::string> AboutDataset(const kube::ObjectKey& dataset);
std::vector<std::string> AboutNodePods();
std::vector<std::string> AboutInjectors();
std::vector<std::string> AboutPage(const kube::ObjectKey& pod);

// Whether the error of a question about our resources is that the cluster does not know them.
bool SaysMissing(const Status& error);
// The error of such a question; kNotFound and how to install optcache where SaysMissing.
Status ExplainMissing(Status error);

}  // namespace optcache::cli
