#pragma once

// A Dataset as the operator reads it: manifests/crds/datasets.yaml in C++.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/enumerations.h"
#include "base/bytes.h"
#include "base/result.h"
#include "dataset/s3_location.h"
#include "dataset/store_price.h"
#include "kube/object.h"
#include "kube/resources.h"

namespace optcache::api {

inline constexpr kube::Resource kDatasets{
    .group = "optcache.io", .version = "v1alpha1", .kind = "Dataset", .plural = "datasets"};

// Its value is part of what an index Job is named by: another value indexes again.
inline constexpr const char* kReindexAnnotation = "optcache.io/reindex";

struct S3Source {
  // Without a token file: that depends on the pod.
  dataset::S3Location place = {.region = "us-east-1"};
  std::string secret;  // empty: none of its own

  // Keys come for the pod's own token.
  bool web_identity() const { return !place.role_arn.empty(); }
};

// The address by which a pod reads it whose token for web identities, if it needs one, is that
// file.
std::string AddressOf(const S3Source& source, const std::string& token_file);
// That by which a pod reads it that has no such token, or gives it none.
std::string AddressWithoutRole(const S3Source& source);

struct HttpSource {
  std::string base_url;
  std::string listing = "index.txt";
  std::string secret;  // empty: read without keys
};

struct ClaimSource {
  std::string claim;
  std::string path;  // inside the volume, may be empty
};

using Source = std::variant<S3Source, HttpSource, ClaimSource>;

// "500Gi", or "30%" of the Dataset.
struct Capacity {
  ByteCount bytes = 0;
  double share = 0;  // above 0: counts instead of `bytes`

  // What it asks for of a Dataset of this many bytes: never more than those.
  ByteCount Of(ByteCount dataset_bytes) const;
};

struct Placement {
  std::map<std::string, std::string> node_selector;
  std::optional<std::uint32_t> max_nodes;
  SchedulingPreference scheduling = SchedulingPreference::kPreferred;
};

// What each process may ask of the source; 0: as much as it carries.
struct Limits {
  std::int64_t requests_per_second = 0;
  ByteCount bytes_per_second = 0;
};

struct DatasetSpec {
  Source source = HttpSource{};
  std::int64_t patience_seconds = 0;  // with it; 0: as the programs have it
  dataset::Format format = dataset::Format::kFiles;
  std::vector<std::string> include;
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
};

// kInvalidArgument lists every fault with its field: "spec.source: needs exactly one of s3, http
// and pvc".
Result<DatasetSpec> ParseDatasetSpec(const kube::Json& object);

// "30%", "500Gi", "1024". kInvalidArgument says what is allowed.
Result<Capacity> ParseCapacity(const std::string& text);

}  // namespace optcache::api
