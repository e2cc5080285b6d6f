#pragma once

// What a stream is called, by all sidecars of a job alike.

#include <string>
#include <string_view>

namespace optcache::sidecar {

// "namespace/name" of a dataset; one without a namespace is in "local".
std::string QualifiedDataset(std::string_view dataset);

// "namespace/owner/dataset/loader". `dataset` is qualified; the namespace is the job's: empty if it
// is the dataset's, else the third part is "namespace:dataset".
std::string StreamName(std::string_view job_namespace, std::string_view dataset,
                       std::string_view owner, std::string_view loader);

}  // namespace optcache::sidecar
