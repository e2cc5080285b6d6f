#pragma once

// The Datasets that jobs of DLCache make. Pure.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "cli/terminal/yaml_text.h"
#include "config/dlc_pod.h"

namespace optcache::cli {

struct DatasetOfJob {
  std::string name;
  YamlDocument document;
};

bool UsesCache(const config::DlcJob& job);
bool HasKeys(const config::DlcJob& job);
// The others read the bucket themselves.
bool HasDatasets(const config::DlcJob& job);

// One for each list of keys. `region` and errors as of ConvertDlcPod (cli/convert/dlcpod.h).
Result<std::vector<DatasetOfJob>> DatasetsOf(const config::DlcPod& pod, const config::DlcJob& job,
                                             const std::string& region);

// Of a resource that the pod makes.
nlohmann::ordered_json MetadataOf(const std::string& name, const config::DlcPod& pod);

// What holds for all Datasets of the pod: to stand above the first.
std::vector<std::string> RemarksOnSource(const config::DlcPod& pod, const std::string& region);

}  // namespace optcache::cli
