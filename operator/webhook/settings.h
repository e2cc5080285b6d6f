#pragma once

// What the injector is told at its start. docs/kubernetes.md says what the names are.

#include <string>
#include <vector>

namespace optcache::webhook {

struct InjectionSettings {
  std::string name = "optcache";              // the chart's full name
  std::string system_namespace = "optcache";  // where the chart is installed
  std::string version;                        // written into the annotation optcache.io/injected
  std::string sidecar_image;                  // with the tag
  std::string image_pull_policy = "IfNotPresent";
  std::vector<std::string> image_pull_secrets;  // names, of Secrets in the pods' namespaces
  // Kubernetes 1.29 and later: an init container that runs as long as the pod. Before that an
  // ordinary container is injected, which ends by itself.
  bool native_sidecars = true;
};

// "1.29+" of GET /version: `major` and `minor` as the API server says them. What is no number
// counts as new.
bool HasNativeSidecars(const std::string& major, const std::string& minor);

}  // namespace optcache::webhook
