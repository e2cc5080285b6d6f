#pragma once

// What the injector knows of Datasets. The operator fills it from its caches: nothing is asked over
// the network while a pod waits for its admission.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/enumerations.h"
#include "base/bytes.h"
#include "dataset/store_price.h"

namespace optcache::webhook {

// Where a sidecar finds its pod's token for services that give keys for it.
inline constexpr const char* kStsToken = "/var/run/secrets/optcache/sts-token";

struct DatasetFacts {
  std::string name_space;
  std::string name;
  bool understood = true;  // else the rest is unknown: its condition Ready says why

  // Where the samples are: a URL, or a folder of a PersistentVolumeClaim. Both empty: a source that
  // this version cannot read.
  std::string url;  // or the address of a bucket, without a role
  std::string claim;
  std::string claim_folder;  // relative to the volume, may be empty
  std::string secret;        // with the store's keys; empty: read without keys
  // The bucket's address where keys come for the pod's own token, in the file kStsToken; empty:
  // it has no role.
  std::string url_by_identity;
  std::vector<std::string> access;  // other namespaces that may use it
  // What each sidecar may ask of the store a second; 0: as much as it carries.
  std::int64_t requests_per_second = 0;
  ByteCount bytes_per_second = 0;
  std::int64_t patience_seconds = 0;  // with the store; 0: as the sidecar has it
  dataset::StorePrice price;          // of the store

  api::SchedulingPreference scheduling = api::SchedulingPreference::kPreferred;
  // The machines that hold it or shall, as values of their label kubernetes.io/hostname.
  std::vector<std::string> hostnames;

  // Not indexed yet: the sizes are not known and 0.
  bool indexed = false;
  std::uint64_t samples = 0;
  ByteCount largest_sample = 0;

  std::string QualifiedName() const { return name_space + "/" + name; }
};

// Used on the loop's thread only.
class DatasetView {
 public:
  virtual ~DatasetView() = default;
  // False until all Datasets have been listed once: then unknown means that there is none.
  virtual bool synced() const = 0;
  // Null if there is none. Valid until the loop's next event.
  virtual const DatasetFacts* Find(std::string_view name_space, std::string_view name) const = 0;

 protected:
  DatasetView() = default;
  DatasetView(const DatasetView&) = default;
  DatasetView& operator=(const DatasetView&) = default;
};

}  // namespace optcache::webhook
