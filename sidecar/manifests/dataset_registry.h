#pragma once

// The datasets of this sidecar, in the order of its command line. One whose manifest the nodes have
// is asked for in the background; its place stands empty until then.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "sidecar/manifests/manifest_client.h"
#include "sidecar/manifests/served_dataset.h"

namespace optcache::sidecar {

// Used on the loop's thread only. What stands in a place stays there.
class DatasetRegistry {
 public:
  struct Place {
    std::string name;
    dataset::StorePrice price;
    std::unique_ptr<ServedDataset> dataset;       // null while its manifest is awaited
    std::string waits_for;                        // a sentence for people, while it is
    std::unique_ptr<storage::ObjectStore> store;  // while it is
    std::unique_ptr<ManifestFetch> fetch;
  };

  // Opens all stores, and the datasets whose manifests are in files. `manifest_dir` is where those
  // from nodes are kept for the next start; empty: nowhere.
  static Result<std::unique_ptr<DatasetRegistry>> Open(const std::vector<DatasetSource>& sources,
                                                       const storage::OpenOptions& store,
                                                       std::string manifest_dir);
  // Cancels the reads of all stores.
  void Shutdown();

  // Asks for the manifests that are missing. `http` outlives the registry; `on_served` is called
  // for each dataset that has come to stand in its place.
  void FetchMissing(net::EventLoop& loop, net::HttpClient& http, const ManifestPlaces& places,
                    std::function<void(const ServedDataset&)> on_served);

  const std::vector<Place>& places() const { return places_; }
  // Where the dataset stands that a client calls so: by its whole name, or without the namespace
  // where no other is called so, or by no name where there is one alone. kNotFound,
  // kInvalidArgument: which names there are.
  Result<std::size_t> Find(std::string_view name) const;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  explicit DatasetRegistry(std::string manifest_dir) : manifest_dir_(std::move(manifest_dir)) {}
  Status OpenPlace(const DatasetSource& source, const storage::OpenOptions& store);
  Status Take(Place& place, UniqueFd manifest);
  std::string KeptFile(const std::string& name) const;

  std::string manifest_dir_;
  std::vector<Place> places_;
  std::function<void(const ServedDataset&)> on_served_;
};

}  // namespace optcache::sidecar
