#pragma once

// The resources that a user writes: Dataset (what to cache) and CachePlan (how). The same YAML is
// read by `optcache up` and by the cluster.
//
//   ASSIGN_OR_RETURN(const Configuration configuration, ParseConfiguration(text, "demo.yaml"));
//
// Errors are kInvalidArgument and name the line:
//   demo.yaml:9: spec.cache.capcity is not known, allowed: capacity, tiers

#include <string>
#include <string_view>
#include <vector>

#include "api/cache_plan.h"
#include "api/dataset.h"
#include "base/result.h"

namespace optcache::config {

inline constexpr std::size_t kMaxFileBytes = 1U << 20;
inline constexpr std::size_t kMaxDocuments = 1000;
inline constexpr std::size_t kMaxListItems = 1000;
inline constexpr std::size_t kMaxTextBytes = 4096;

struct Dataset {
  std::string name;
  std::string name_space = "default";
  api::DatasetSpec spec;

  std::string QualifiedName() const { return name_space + "/" + name; }
  friend bool operator==(const Dataset&, const Dataset&) = default;
};

struct CachePlan {
  std::string name;
  std::string name_space = "default";
  std::string where;  // that its dataset is named, for messages: "demo.yaml:9: spec.dataset"
  api::CachePlanSpec spec;
  friend bool operator==(const CachePlan&, const CachePlan&) = default;
};

// Datasets and plans in the order of the file; names are unique, and each plan names a dataset that
// is there or in another file.
struct Configuration {
  std::vector<Dataset> datasets;
  std::vector<CachePlan> plans;

  // The plan of the dataset; one with defaults if the user wrote none.
  CachePlan PlanOf(const Dataset& dataset) const;
};

// `file` is for messages. kInvalidArgument: see above; also what is not YAML, larger than
// kMaxFileBytes, or uses anchors and aliases.
Result<Configuration> ParseConfiguration(std::string_view text, std::string_view file);

// Several files as one: kInvalidArgument if two resources have one name, two plans one dataset, or
// a plan a dataset that is not there.
Status Merge(Configuration part, Configuration& whole);
Status CheckReferences(const Configuration& whole);

}  // namespace optcache::config
