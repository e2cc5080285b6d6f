#include "sidecar/ports/stream_name.h"

namespace optcache::sidecar {

std::string QualifiedDataset(std::string_view dataset) {
  if (dataset.contains('/')) return std::string(dataset);
  return std::string("local/").append(dataset);
}

std::string StreamName(std::string_view job_namespace, std::string_view dataset,
                       std::string_view owner, std::string_view loader) {
  const std::size_t slash = dataset.find('/');
  const std::string_view dataset_namespace = dataset.substr(0, slash);
  const bool at_home = job_namespace.empty() || job_namespace == dataset_namespace;
  std::string name(at_home ? dataset_namespace : job_namespace);
  name.append("/").append(owner).append("/");
  if (!at_home) name.append(dataset_namespace).append(":");
  name.append(dataset.substr(slash + 1)).append("/").append(loader);
  return name;
}

}  // namespace optcache::sidecar
