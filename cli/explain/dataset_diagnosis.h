#pragma once

// What `kubectl optcache explain dataset` tells of a Dataset: why it is not Ready or slow. Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/explain/finding.h"

namespace optcache::cli {

// What the cluster answered, as JSON. nullopt: could not be had, and `unseen` says why.
struct DatasetAnswers {
  std::string dataset;
  std::optional<std::string> plans{};      // a List of the CachePlans of its namespace
  std::optional<std::string> warmups{};    // a List of the Warmups of its namespace
  std::optional<std::string> node_pods{};  // a List of our node pods
  std::optional<std::string> events{};     // a List of its Events
  std::vector<Finding> unseen{};
};

// kInvalidArgument: `answers.dataset` is no Dataset, or a List is none.
Result<Explanation> ExplainDataset(const DatasetAnswers& answers);

}  // namespace optcache::cli
