#pragma once

// A job of DLCache, another cache for training data: apiVersion docgroup.com/v1alpha1, kind DLCPod.
// `optcache convert dlcpod` makes resources of ours from it.
//
// Errors are kInvalidArgument and name the line, as those of configuration.h:
//   pod.yaml:12: spec.jobs[0].qos.maxmemory is not known, allowed: usecache, lazyloading,
//   MaxPartMill

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/yaml_value.h"

namespace optcache::config {

// Beginnings of keys in the bucket.
struct DlcKeys {
  std::vector<std::string> samples;
  std::vector<std::string> targets;
  std::vector<std::string> manifests;
};

// One container of the pod, and what it reads.
struct DlcJob {
  std::string name;
  // Fields that containers of Kubernetes have, too, as they are written.
  std::vector<std::pair<std::string, YamlValue>> container;
  std::string source_name;
  std::string bucket;
  std::string etag;
  std::array<DlcKeys, 3> keys;  // by kDlcSets
  std::optional<bool> use_cache;
  bool lazy_loading = false;
  std::int64_t max_part_mill = 0;
  std::string qos_config_map;
};
inline constexpr std::array<std::string_view, 3> kDlcSets{"train", "validation", "test"};

struct DlcPod {
  std::string name;
  std::string name_space;  // empty: not written
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string secret;
  std::vector<DlcJob> jobs;
  std::optional<YamlValue> volumes;  // a list
  std::map<std::string, std::string> pod_labels;
  std::map<std::string, std::string> node_selector;
  std::string node_name;
  bool host_network = false;
  bool has_node_sequence = false;
};

// One at least. `file` is for messages. kInvalidArgument: also what is not UTF-8, or beyond the
// limits of configuration.h.
Result<std::vector<DlcPod>> ParseDlcPods(std::string_view text, std::string_view file);

}  // namespace optcache::config
