#pragma once

// The resources that a user writes: Dataset (what to cache) and CachePlan (how). The same YAML is
// read by `optcache up` and by the cluster.
//
//   ASSIGN_OR_RETURN(const Configuration configuration, ParseConfiguration(text, "demo.yaml"));
//
// Errors are kInvalidArgument and name the line:
//   demo.yaml:9: spec.cache.capcity is not known, allowed: capacity, tiers

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/enumerations.h"
#include "base/bytes.h"
#include "base/result.h"
#include "dataset/index_interval.h"
#include "dataset/patience.h"
#include "dataset/s3_location.h"
#include "dataset/store_price.h"

namespace optcache::config {

inline constexpr std::size_t kMaxFileBytes = 1U << 20;
inline constexpr std::size_t kMaxDocuments = 1000;
inline constexpr std::size_t kMaxListItems = 1000;
inline constexpr std::size_t kMaxTextBytes = 4096;

// "500Gi" or "30%" of the dataset.
struct Capacity {
  ByteCount bytes = 0;
  double percent = 0;  // above 0: of the dataset, and `bytes` is not used
  ByteCount Of(ByteCount dataset_bytes) const;
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

struct FileSource {
  std::string path;
  friend bool operator==(const FileSource&, const FileSource&) = default;
};
struct HttpSource {
  std::string base_url;
  std::string listing = "index.txt";
  friend bool operator==(const HttpSource&, const HttpSource&) = default;
};

// A bucket; keys come from the environment of the processes that read it.
using S3Source = dataset::S3Location;

enum class Tier { kMemory, kDisk };

struct Placement {
  std::map<std::string, std::string> node_selector;
  std::uint32_t max_nodes = 0;  // 0: no limit
  api::SchedulingPreference scheduling = api::SchedulingPreference::kPreferred;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// What each process may ask of the source; 0: as much as it carries.
struct Limits {
  std::int64_t requests_per_second = 0;
  ByteCount bytes_per_second = 0;
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct Dataset {
  std::string name;
  std::string name_space = "default";
  std::optional<FileSource> file;  // exactly one of these three
  std::optional<HttpSource> http;
  std::optional<S3Source> s3;
  Duration patience = dataset::kPatience;  // how long the source may be away
  dataset::Format format = dataset::Format::kFiles;
  std::vector<std::string> include;        // empty: all that are samples
  std::optional<Duration> index_interval;  // for clusters alone
  std::optional<dataset::Order> order;     // unset: chosen by what is there
  api::Verify verify = api::Verify::kChecksum;
  Limits limits;
  dataset::StorePrice price;
  Capacity capacity;
  std::optional<Capacity> min_capacity;
  std::vector<Tier> tiers = {Tier::kMemory};
  Placement placement;
  std::vector<std::string> access;  // other namespaces that may use it

  std::string QualifiedName() const { return name_space + "/" + name; }
  // Where the samples are: a path, a URL or the address of a bucket.
  std::string Address() const;
  friend bool operator==(const Dataset&, const Dataset&) = default;
};

enum class RolloutStrategy { kStaged, kAllAtOnce };
enum class ActivateAt { kEpochBoundary, kNow };

struct Sampler {
  std::string kind = "TorchDistributed";
  std::int64_t seed = 0;
  std::uint32_t world_size = 1;
  std::uint64_t epochs = 1;
  bool shuffle = true;
  bool drop_last = false;
  friend bool operator==(const Sampler&, const Sampler&) = default;
};

// A job that is known before it runs.
struct Job {
  std::string name;
  Sampler sampler;
  friend bool operator==(const Job&, const Job&) = default;
};

struct Abort {
  double when_below_predicted_by = 0.05;
  double when_worse_than_previous_by = 0.05;
  std::uint32_t after = 1;  // passes of observation
  friend bool operator==(const Abort&, const Abort&) = default;
};

struct Rollout {
  RolloutStrategy strategy = RolloutStrategy::kStaged;
  std::uint32_t partition = 0;
  std::string max_unavailable = "25%";  // a count or a percentage
  ActivateAt activate_at = ActivateAt::kEpochBoundary;
  bool paused = false;
  bool acknowledge = false;
  Abort abort;
  friend bool operator==(const Rollout&, const Rollout&) = default;
};

struct CachePlan {
  std::string name;
  std::string name_space = "default";
  std::string dataset;  // of the same namespace
  std::string where;    // that is written, for messages: "demo.yaml:9: spec.dataset"
  api::Retention retention = api::Retention::kOptimal;
  plan::Objective objective = plan::Objective::kBytes;
  std::vector<Job> jobs;
  Rollout rollout;
  std::uint32_t revision_history_limit = 10;
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
