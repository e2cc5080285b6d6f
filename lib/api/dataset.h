#pragma once

// A Dataset: manifests/crds/datasets.yaml in C++. What the API server's rules refuse is refused
// here as well: older servers do not know them, and on one machine there is none.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/enumerations.h"
#include "api/source.h"
#include "base/bytes.h"
#include "base/result.h"
#include "dataset/store_price.h"

namespace optcache::api {

// "500Gi", or "30%" of the Dataset.
struct Capacity {
  ByteCount bytes = 0;
  double percent = 0;  // above 0: counts instead of `bytes`

  // What it asks for, of a Dataset of this many bytes.
  ByteCount Asked(ByteCount dataset_bytes) const;
  // The same, but never more than those.
  ByteCount Of(ByteCount dataset_bytes) const;
  friend bool operator==(const Capacity&, const Capacity&) = default;
};

struct Placement {
  std::map<std::string, std::string> node_selector;
  std::optional<std::uint32_t> max_nodes;
  SchedulingPreference scheduling = SchedulingPreference::kPreferred;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// What each process may ask of the source; 0: as much as it carries.
struct Limits {
  std::int64_t requests_per_second = 0;
  ByteCount bytes_per_second = 0;
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct DatasetSpec {
  Source source;
  std::int64_t patience_seconds = 0;  // with it; 0: as the programs have it
  dataset::Format format = dataset::Format::kFiles;
  std::vector<std::string> include;         // empty: all that are samples
  std::int64_t index_interval_seconds = 0;  // the source is indexed again so often; 0: never
  std::optional<dataset::Order> order;      // unset: chosen by what is there
  Verify verify = Verify::kChecksum;
  Limits limits;
  dataset::StorePrice price;
  Capacity capacity;
  std::optional<Capacity> min_capacity;
  bool on_disk = false;  // what memory has no room for may lie on the nodes' disks
  Placement placement;
  std::vector<std::string> access;  // other namespaces that may use it

  // Bytes that it keeps whatever else is read, of a Dataset of this many: never more than its
  // capacity.
  ByteCount GuaranteedOf(ByteCount dataset_bytes) const;
  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;
};

// The field `spec` of a resource.
DatasetSpec ReadDatasetSpec(Fields& resource, Place place);

// Of a cluster's object. kInvalidArgument lists every error with its field: "spec.source: needs
// exactly one of s3, http and pvc".
Result<DatasetSpec> ParseDatasetSpec(const nlohmann::json& object);

// "30%", "500Gi", "1024". kInvalidArgument says what is allowed.
Result<Capacity> ParseCapacity(const std::string& text);

}  // namespace optcache::api
