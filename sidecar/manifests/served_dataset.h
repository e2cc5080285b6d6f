#pragma once

// A dataset that this sidecar serves: its manifest, and the store that its samples lie in.

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "dataset/manifest.h"
#include "dataset/patience.h"
#include "dataset/store_price.h"
#include "sidecar/ports/ports.h"
#include "storage/object_store.h"
#include "storage/open_store.h"

namespace optcache::sidecar {

// Where a dataset is to be found, as given on the command line.
struct DatasetSource {
  std::string name;
  std::string manifest_file;  // empty: the nodes have it
  std::string store_uri;
  std::string keys_folder;    // of the store, see storage/open_store.h; empty: read without
  bool ambient_keys = true;   // likewise
  storage::StoreRates rates;  // of what this process asks of the store
  Duration patience = dataset::kPatience;  // with it
  dataset::StorePrice price;               // what it takes; of no effect on reads
};

// How its store is opened; what is the same for all datasets is in `common`.
storage::OpenOptions OpenOptionsOf(const DatasetSource& source, storage::OpenOptions common = {});

// "NAME=MANIFEST_FILE=STORE_URI", or "NAME==STORE_URI". kInvalidArgument repeats the form.
Result<DatasetSource> ParseDatasetSource(std::string_view text);

// "NAME=FOLDER": the keys of one of `datasets`. kInvalidArgument: not that form, or no such
// dataset.
Status AddKeys(std::string_view text, std::vector<DatasetSource>& datasets);

// "NAME": one of `datasets` whose owner is somebody else than that of this process's surroundings,
// so that its store gets no keys of these. kInvalidArgument: no such dataset.
Status LeaveOutAmbientKeys(std::string_view name, std::vector<DatasetSource>& datasets);

// "NAME=N" and "NAME=BYTES": how many requests, and bytes ("50Mi"), of the store of one of
// `datasets` this process may ask for a second. kInvalidArgument: not that form, not above 0, or no
// such dataset.
Status AddRequestRate(std::string_view text, std::vector<DatasetSource>& datasets);
Status AddByteRate(std::string_view text, std::vector<DatasetSource>& datasets);

// "NAME=10m": how long the store of one of `datasets` may be away. kInvalidArgument: not that form,
// not a span of time within bounds (dataset/patience.h), or no such dataset.
Status AddPatience(std::string_view text, std::vector<DatasetSource>& datasets);

// "NAME=0.0000004": what the store of one of `datasets` takes for a request, and for a GiB.
// kInvalidArgument: not that form, not a price (dataset/store_price.h), or no such dataset.
Status AddPricePerRequest(std::string_view text, std::vector<DatasetSource>& datasets);
Status AddPricePerGib(std::string_view text, std::vector<DatasetSource>& datasets);

// The numbers of the rates. kInvalidArgument says what is allowed.
Result<double> ParseRequestRate(std::string_view text);
Result<double> ParseByteRate(std::string_view text);

// The store of a dataset, with its keys, rates and patience.
Result<std::unique_ptr<storage::ObjectStore>> OpenStoreOf(const DatasetSource& source,
                                                          const storage::OpenOptions& common);

// A manifest's file as a sealed memory file, in which it is served.
Result<UniqueFd> SealedCopyOf(const std::string& manifest_file);

// Thread-safe but for moves: nothing changes it.
class ServedDataset final : public DatasetPort {
 public:
  // Reads the manifest's file and opens the store.
  static Result<std::unique_ptr<ServedDataset>> Open(const DatasetSource& source,
                                                     const storage::OpenOptions& options = {});
  // Takes over a sealed memory file, whose bytes may come from anywhere, and, if they are a
  // manifest, the store.
  static Result<std::unique_ptr<ServedDataset>> Make(std::string name, UniqueFd manifest,
                                                     std::unique_ptr<storage::ObjectStore>& store,
                                                     const dataset::StorePrice& price = {});

  const std::string& name() const override { return name_; }
  wire::DatasetKey key() const override { return key_; }
  SampleId samples() const override { return manifest_.samples(); }
  ByteCount SizeOf(SampleId id) const override { return manifest_.Size(id); }
  std::optional<StorePlace> PlaceOf(SampleId id) const override;
  dataset::StorePrice price() const override { return price_; }
  std::optional<ByteCount> StoreBytesOf(SampleId id) const override;

  const dataset::Manifest& manifest() const { return manifest_; }
  // A sealed memory file with the manifest's bytes, for clients.
  int manifest_fd() const { return manifest_fd_.get(); }
  storage::ObjectStore& store() const { return *store_; }

 private:
  ServedDataset(std::string name, dataset::Manifest manifest, UniqueFd manifest_fd,
                std::unique_ptr<storage::ObjectStore> store, const dataset::StorePrice& price);

  std::string name_;
  wire::DatasetKey key_;
  dataset::Manifest manifest_;
  UniqueFd manifest_fd_;
  std::unique_ptr<storage::ObjectStore> store_;
  dataset::StorePrice price_;
};

}  // namespace optcache::sidecar
