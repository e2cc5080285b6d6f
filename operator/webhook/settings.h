#pragma once

// What the injector is told at its start. docs/kubernetes.md says what the names are.

#include <optional>
#include <string>
#include <vector>

#include "operator/webhook/json_access.h"

namespace optcache::webhook {

// A machine whose kubelet ends no sidecar: Kubernetes before 1.29 knows no init containers that run
// as long as the pod.
struct OldMachine {
  std::string name;
  Json labels;
  friend bool operator==(const OldMachine&, const OldMachine&) = default;
};
// Nothing for a Node with a later kubelet, for Windows, and for virtual kubelets, whose versions
// are their own. What is no version counts as late.
std::optional<OldMachine> OldMachineOf(const Json& node);

struct InjectionSettings {
  std::string name = "optcache";              // the chart's full name
  std::string system_namespace = "optcache";  // where the chart is installed
  std::string version;                        // written into the annotation optcache.io/injected
  std::string sidecar_image;                  // with the tag
  std::string image_pull_policy = "IfNotPresent";
  std::vector<std::string> image_pull_secrets;  // names, of Secrets in the pods' namespaces
  Json source_variables = Json::array();        // more entries of the sidecar's `env`
  // For pods that one of these might run, or for all, an ordinary container is injected, which ends
  // by itself.
  std::vector<OldMachine> old_machines;
  bool ordinary_sidecars = false;
};

// Whether the pod can only run where an init container may go on, by its nodeName and nodeSelector.
bool MayBeNative(const Json& pod_spec, const InjectionSettings& settings);

}  // namespace optcache::webhook
