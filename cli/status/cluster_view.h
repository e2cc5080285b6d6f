#pragma once

// What `kubectl optcache status` shows: the Datasets and CachePlans of a cluster, our pods, and the
// jobs that train through them, on one screen.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::cli {

// Of the Dataset's status, since the Dataset was made.
struct SavedRow {
  std::int64_t requests = 0;
  std::int64_t bytes = 0;
  std::uint64_t waited_seconds = 0;
  std::string cost;  // empty: it has no prices
  friend bool operator==(const SavedRow&, const SavedRow&) = default;
};

struct DatasetRow {
  std::string name;    // "namespace/name"
  std::string ready;   // "True", "False", "Unknown"
  std::string reason;  // of the condition Ready
  std::uint64_t samples = 0;
  ByteCount bytes = 0;
  ByteCount cached_bytes = 0;
  ByteCount granted = 0;            // memory that it may use
  std::uint64_t saved_rate = 0;     // bytes a second that the source need not deliver; 0: not known
  std::string hit_ratio;            // as in the status: "0.302"; empty: nothing was read
  std::string predicted_hit_ratio;  // the same
  std::size_t nodes = 0;            // that hold some of it
  std::optional<SavedRow> saved{};  // nothing was read yet
  friend bool operator==(const DatasetRow&, const DatasetRow&) = default;
};

struct PlanRow {
  std::string name;     // "namespace/name"
  std::string dataset;  // of that namespace
  std::string retention;
  std::string revision;
  std::string available;     // "True", "False", "Unknown"
  std::uint64_t active = 0;  // nodes
  std::uint64_t desired = 0;
  std::string phase;    // of its rollout; empty: there was none
  std::string rollout;  // a line, while one is under way
  friend bool operator==(const PlanRow&, const PlanRow&) = default;
};

struct JobRow {
  std::string dataset;  // "namespace/name"
  std::string name;
  std::uint64_t ranks = 0;
  std::uint64_t pass = 0;
  std::uint64_t position = 0;
  std::string rate;
  std::string order;
  friend bool operator==(const JobRow&, const JobRow&) = default;
};

// A pod of ours, operator or node.
struct PodRow {
  std::string name;
  std::string machine;
  std::string component;  // "operator", "node"
  bool ready = false;
  bool leads = false;  // of the operator
  std::uint64_t restarts = 0;
  ByteCount cached_bytes = 0;  // of a node, of all Datasets
  friend bool operator==(const PodRow&, const PodRow&) = default;
};

struct ClusterView {
  std::vector<DatasetRow> datasets;
  std::vector<PlanRow> plans;
  std::vector<JobRow> jobs;
  std::vector<PodRow> pods;
  std::vector<std::string> notes;  // what needs somebody's attention
  friend bool operator==(const ClusterView&, const ClusterView&) = default;
};

// What the API server answered, as JSON. Empty: could not be had (`notes` say why).
struct ClusterAnswers {
  std::string resources;            // a List of Datasets and CachePlans
  std::string pods;                 // a List of our pods
  std::vector<std::string> leases;  // a List for each namespace of an operator
  std::vector<std::string> notes;
};

// Where operators run, of a List of our pods; none: there is none, or it is no List.
std::set<std::string> OperatorNamespaces(std::string_view pods);

// kInvalidArgument: not what an API server answers.
Result<ClusterView> ReadClusterView(const ClusterAnswers& answers);

// Pure; ends with a newline.
std::string FormatClusterView(const ClusterView& view);
std::string ToJson(const ClusterView& view);

}  // namespace optcache::cli
