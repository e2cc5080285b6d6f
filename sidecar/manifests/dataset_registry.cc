#include "sidecar/manifests/dataset_registry.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "sidecar/ports/stream_name.h"

namespace optcache::sidecar {
namespace {

void LogServed(const ServedDataset& dataset) {
  Log(LogLevel::kInfo, "serving a dataset",
      {{"dataset", dataset.name()},
       {"samples", dataset.samples()},
       {"bytes", FormatBytes(dataset.manifest().total_bytes())},
       {"manifest", dataset::ToHex(dataset.manifest().digest())},
       {"store", dataset.store().name()}});
}

}  // namespace

Result<std::unique_ptr<DatasetRegistry>> DatasetRegistry::Open(
    const std::vector<DatasetSource>& sources, const storage::OpenOptions& store,
    std::string manifest_dir) {
  std::unique_ptr<DatasetRegistry> registry(new DatasetRegistry(std::move(manifest_dir)));
  if (!registry->manifest_dir_.empty()) {
    std::error_code error;
    std::filesystem::create_directories(registry->manifest_dir_, error);
    if (error) return Error(ErrnoStatus(error.value(), "make " + registry->manifest_dir_));
  }
  for (const DatasetSource& source : sources) {
    RETURN_IF_ERROR(registry->OpenPlace(source, store));
  }
  return registry;
}

Status DatasetRegistry::OpenPlace(const DatasetSource& source, const storage::OpenOptions& store) {
  Place place{.name = source.name, .price = source.price};
  if (!source.manifest_file.empty()) {
    ASSIGN_OR_RETURN(place.dataset, ServedDataset::Open(source, store));
    LogServed(*place.dataset);
  } else {
    ASSIGN_OR_RETURN(place.store, OpenStoreOf(source, store));
    place.waits_for = "no node was asked for its manifest yet";
    auto kept =
        manifest_dir_.empty() ? Error(Code::kNotFound, "") : SealedCopyOf(KeptFile(source.name));
    if (kept) {
      const Status taken = Take(place, *std::move(kept));
      if (!taken.ok()) {
        Log(LogLevel::kWarning, "a kept manifest is damaged, asking the nodes",
            {{"dataset", source.name}, {"why", taken.message()}});
      }
    }
  }
  places_.push_back(std::move(place));
  return OkStatus();
}

// A name of Kubernetes has no '_', so that two datasets cannot meet in one file.
std::string DatasetRegistry::KeptFile(const std::string& name) const {
  std::string file = name;
  std::ranges::replace(file, '/', '_');
  return manifest_dir_ + "/" + file + ".manifest";
}

Status DatasetRegistry::Take(Place& place, UniqueFd manifest) {
  ASSIGN_OR_RETURN(place.dataset,
                   ServedDataset::Make(place.name, std::move(manifest), place.store, place.price));
  LogServed(*place.dataset);
  return OkStatus();
}

void DatasetRegistry::FetchMissing(net::EventLoop& loop, net::HttpClient& http,
                                   const ManifestPlaces& places,
                                   std::function<void(const ServedDataset&)> on_served) {
  on_served_ = std::move(on_served);
  for (Place& place : places_) {
    if (place.dataset != nullptr) continue;
    place.fetch = std::make_unique<ManifestFetch>(
        loop, http, places, place.name,
        ManifestFetch::Hooks{
            .take = [this, &place](UniqueFd file) -> Status {
              RETURN_IF_ERROR(Take(place, std::move(file)));
              const std::string_view manifest = place.dataset->manifest().bytes();
              const Status kept = manifest_dir_.empty()
                                      ? OkStatus()
                                      : WriteFileAtomically(KeptFile(place.name), manifest);
              if (!kept.ok()) {
                Log(LogLevel::kWarning, "a manifest could not be kept for the next start",
                    {{"dataset", place.name}, {"why", kept.message()}});
              }
              on_served_(*place.dataset);
              return OkStatus();
            },
            .explain = [&place](const std::string& why) { place.waits_for = why; }});
  }
}

void DatasetRegistry::Shutdown() {
  for (const Place& place : places_) {
    if (place.dataset != nullptr) place.dataset->store().Shutdown();
  }
}

Result<std::size_t> DatasetRegistry::Find(std::string_view name) const {
  std::string known;
  std::vector<std::size_t> namesakes;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::string_view whole = places_[i].name;
    if (name.empty() || whole.substr(whole.find('/') + 1) == name) namesakes.push_back(i);
    if (QualifiedDataset(whole) == QualifiedDataset(name)) return i;
    known.append(known.empty() ? "" : ", ").append(whole);
  }
  if (namesakes.size() == 1) return namesakes.front();
  if (name.empty()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("this sidecar serves several datasets; name one of: {}", known));
  }
  if (!namesakes.empty()) {
    return Error(
        Code::kInvalidArgument,
        fmt::format("this sidecar serves several datasets '{}'; write one of: {}", name, known));
  }
  return Error(Code::kNotFound,
               fmt::format("this sidecar does not serve dataset '{}'; it serves: {}", name, known));
}

void DatasetRegistry::VisitCounters(const CounterVisitor& visitor) const {
  double awaited = 0;
  for (const Place& place : places_) {
    if (place.dataset != nullptr) {
      place.dataset->store().VisitCounters(visitor);
    } else {
      ++awaited;
    }
  }
  visitor(MetricKind::kGauge, "optcache_manifests_awaited", {}, awaited);
}

}  // namespace optcache::sidecar
