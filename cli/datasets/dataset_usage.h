#pragma once

// datasets du: what the Datasets of a cluster take, in the source and in the memory of its nodes.

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cli/terminal/action.h"

namespace optcache::cli {

struct DatasetUsage {
  struct OnNode {
    std::string name;  // the Kubernetes node
    ByteCount cached = 0;
    friend bool operator==(const OnNode&, const OnNode&) = default;
  };
  std::string name;  // "namespace/name"
  std::uint64_t samples = 0;
  ByteCount bytes = 0;    // in the source; 0: not indexed
  ByteCount granted = 0;  // what nodes may keep of it
  ByteCount cached = 0;   // what they do
  std::vector<OnNode> nodes;
  friend bool operator==(const DatasetUsage&, const DatasetUsage&) = default;
};

// Of a List of Datasets as the API server answers, the one that has most in the cache first; if
// `names` is not empty, of those alone. kInvalidArgument: it is no List; kNotFound: one of the
// names is not there.
Result<std::vector<DatasetUsage>> ReadDatasetUsage(std::string_view list,
                                                   const std::vector<std::string>& names);

// Pure; end with a newline. `by_node`: with a line for each node below its Dataset.
std::string FormatDatasetUsage(const std::vector<DatasetUsage>& usage, bool by_node);
std::string ToJson(const std::vector<DatasetUsage>& usage);

void AddDatasetsCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
