#pragma once

// The Job of Kubernetes that a pod of DLCache makes. Pure.

#include <string>
#include <vector>

#include "cli/terminal/yaml_text.h"
#include "config/dlc_pod.h"

namespace optcache::cli {

// How the jobs of a pod use its Datasets.
struct DlcPodDatasets {
  std::vector<std::string> names;         // containers open the first, unless they are told another
  std::vector<std::string> first_of_job;  // in the order of the jobs; empty: it uses none
};

// All jobs as containers.
YamlDocument JobOf(const config::DlcPod& pod, const DlcPodDatasets& datasets);

}  // namespace optcache::cli
