#pragma once

// From jobs of DLCache to Datasets and annotated Jobs. Pure.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/terminal/yaml_text.h"
#include "config/dlc_pod.h"

namespace optcache::cli {

// A Dataset for each list of keys of each job that uses the cache, then one Job of Kubernetes with
// all jobs as containers. What has no meaning here is named in the remarks.
//
// `region` is that of the buckets; empty: it is in the Secret, and a remark says so.
// kInvalidArgument: two data sources have one name and differ, keys cannot be written as patterns,
// or there are more Datasets than a pod can use.
Result<std::vector<YamlDocument>> ConvertDlcPod(const config::DlcPod& pod,
                                                const std::string& region);

// The documents of all of them, each once. kInvalidArgument, with the name of the pod: also if two
// documents have one kind, namespace and name, and differ. No namespace counts as `default`.
Result<std::vector<YamlDocument>> ConvertDlcPods(const std::vector<config::DlcPod>& pods,
                                                 const std::string& region);

}  // namespace optcache::cli
