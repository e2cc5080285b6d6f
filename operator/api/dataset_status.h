#pragma once

// status of a Dataset: what the operator writes, and later reads again as its own memory.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "coordination/savings.h"
#include "kube/object.h"

namespace optcache::api {

// status.nodes names this many at most: those that hold most.
inline constexpr std::size_t kMaxStatusNodes = 1000;

struct NodeBytes {
  std::string name;  // of the Kubernetes node
  ByteCount bytes = 0;
  friend bool operator==(const NodeBytes&, const NodeBytes&) = default;
};

// How much of the nodes' memory and disks it gets, and what by.
struct CapacityStatus {
  ByteCount granted = 0;
  ByteCount on_disk = 0;  // of that
  ByteCount guaranteed = 0;
  ByteCount maximum = 0;
  std::uint64_t read_rate = 0;   // bytes a second, three digits; 0: nobody reads, or not known
  std::uint64_t saved_rate = 0;  // of those the source need not deliver
  friend bool operator==(const CapacityStatus&, const CapacityStatus&) = default;
};

inline constexpr std::uint64_t kMicrosecondsPerSecond = 1'000'000;

// What the cache has saved in all.
struct SavedStatus {
  coordination::Savings saved;  // the wait in whole seconds
  std::string cost;             // by the prices of the Dataset; empty: it has none
  std::string at;               // the time of these sums, RFC 3339
  friend bool operator==(const SavedStatus&, const SavedStatus&) = default;
};

// What was different when the source was listed again, at the last time that something was.
struct SourceChange {
  std::uint64_t added = 0;  // objects
  std::uint64_t changed = 0;
  std::uint64_t removed = 0;
  std::string message;  // names the first of each
  std::string at;       // RFC 3339
  friend bool operator==(const SourceChange&, const SourceChange&) = default;
};

struct DatasetStatus {
  std::int64_t observed_generation = 0;
  // What the index Job has said. Empty: not indexed yet.
  std::string index_hash;
  std::string manifest_digest;
  std::uint64_t samples = 0;
  ByteCount bytes = 0;
  ByteCount largest_sample = 0;
  // What the nodes say.
  std::uint64_t manifest_holders = 0;
  ByteCount cached_bytes = 0;
  std::optional<double> hit_ratio;            // nothing was read yet
  std::optional<double> predicted_hit_ratio;  // there is no plan
  std::vector<NodeBytes> nodes;               // ascending by name
  std::optional<CapacityStatus> capacity;     // it is placed nowhere yet
  std::optional<SavedStatus> saved;           // nothing was read yet
  std::optional<SourceChange> last_change;    // it was never another one
  kube::Json conditions = kube::Json::array();
};

// What cannot be read has its default value: the operator makes it again.
DatasetStatus ParseDatasetStatus(const kube::Json& object);

// The value of "status"; ratios with three digits.
kube::Json ToJson(const DatasetStatus& status);

}  // namespace optcache::api
