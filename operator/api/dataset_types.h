#pragma once

// A Dataset as the operator reads it: manifests/crds/datasets.yaml in C++.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "kube/object.h"
#include "kube/resources.h"

namespace optcache::api {

inline constexpr kube::Resource kDatasets{
    .group = "optcache.io", .version = "v1alpha1", .kind = "Dataset", .plural = "datasets"};

// Its value is part of what an index Job is named by: another value indexes again.
inline constexpr const char* kReindexAnnotation = "optcache.io/reindex";

struct S3Source {
  std::string bucket;
  std::string prefix;
  std::string endpoint;  // empty: Amazon's of the region
  std::string region = "us-east-1";
  std::string secret;  // empty: read without keys
};

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

enum class Format { kFiles, kTar };
enum class Order { kAutomatic, kImageFolder, kPath, kList };
enum class Verify { kChecksum, kDigest };
enum class SchedulingPreference { kPreferred, kRequired, kNone };

// "500Gi", or "30%" of the Dataset.
struct Capacity {
  ByteCount bytes = 0;
  double share = 0;  // above 0: counts instead of `bytes`

  // What it asks for of a Dataset of so many bytes: never more than those.
  ByteCount Of(ByteCount dataset_bytes) const;
};

struct Placement {
  std::map<std::string, std::string> node_selector;
  std::optional<std::uint32_t> max_nodes;
  SchedulingPreference scheduling = SchedulingPreference::kPreferred;
};

// Another namespace that may use it, with objects of its own to read the source by.
struct Access {
  std::string ns;
  std::string secret;  // empty: none
  std::string claim;   // empty: none
};

struct DatasetSpec {
  Source source = HttpSource{};
  Format format = Format::kFiles;
  std::vector<std::string> include;
  Order order = Order::kAutomatic;
  Verify verify = Verify::kChecksum;
  Capacity capacity;
  std::optional<Capacity> min_capacity;
  Placement placement;
  std::vector<Access> access;

  // Bytes that it keeps whoever else reads, of a Dataset of so many: never more than its capacity.
  ByteCount FloorOf(ByteCount dataset_bytes) const;
};

// kInvalidArgument lists every fault with its field: "spec.source: needs exactly one of s3, http
// and pvc".
Result<DatasetSpec> ParseDatasetSpec(const kube::Json& object);

// "30%", "500Gi", "1024". kInvalidArgument says what is allowed.
Result<Capacity> ParseCapacity(const std::string& text);

// As the CRD and `optcache-sidecar index` write them; kAutomatic has none.
std::string_view OrderName(Order order);
std::string_view VerifyName(Verify verify);

}  // namespace optcache::api
