// Reads the flags that describe datasets, and opens a dataset: its manifest in memory and its
// store.
//
// The manifest is copied into a sealed memory file, which the sidecar and all training processes
// map. The seal keeps it as it was when it was checked. The dataset's key follows from its name and
// the manifest's digest.

#include "sidecar/manifests/served_dataset.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/files.h"
#include "handoff/memory_file.h"
#include "sidecar/manifests/manifest_client.h"
#include "storage/sample_read.h"

namespace optcache::sidecar {
namespace {

struct NamedValue {
  DatasetSource* dataset = nullptr;
  std::string_view value;
};

// "NAME=VALUE" with the name of one of `datasets`.
Result<NamedValue> SplitNamed(std::string_view flag, std::string_view what, std::string_view text,
                              std::vector<DatasetSource>& datasets) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto dataset = std::ranges::find(datasets, name, &DatasetSource::name);
  if (equals == std::string_view::npos || equals + 1 == text.size() || dataset == datasets.end()) {
    return Error(Code::kInvalidArgument, std::string(flag) + " '" + std::string(text) +
                                             "' is not NAME=" + std::string(what) +
                                             ", with the NAME of a --dataset");
  }
  return NamedValue{.dataset = &*dataset, .value = text.substr(equals + 1)};
}

Status AddPrice(std::string_view flag, std::string_view text, double dataset::StorePrice::* part,
                std::vector<DatasetSource>& datasets) {
  ASSIGN_OR_RETURN(const NamedValue named, SplitNamed(flag, "NUMBER", text, datasets));
  const Result<double> price = dataset::ParsePrice(named.value);
  if (!price)
    return Status(price.error()).WithContext(std::string(flag) + " " + named.dataset->name);
  named.dataset->price.*part = *price;
  return OkStatus();
}

}  // namespace

Result<DatasetSource> ParseDatasetSource(std::string_view text) {
  const std::size_t first = text.find('=');
  const std::size_t second = first == std::string_view::npos ? first : text.find('=', first + 1);
  if (second == std::string_view::npos || first == 0 || second + 1 == text.size()) {
    return Error(Code::kInvalidArgument,
                 "--dataset '" + std::string(text) +
                     "' is not NAME=MANIFEST_FILE=STORE_URI, for example "
                     "images=/var/lib/optcache/images.manifest=file:///data/images, nor "
                     "NAME==STORE_URI for one whose manifest the nodes have");
  }
  return DatasetSource{.name = std::string(text.substr(0, first)),
                       .manifest_file = std::string(text.substr(first + 1, second - first - 1)),
                       .store_uri = std::string(text.substr(second + 1))};
}

Status AddKeys(std::string_view text, std::vector<DatasetSource>& datasets) {
  ASSIGN_OR_RETURN(const NamedValue keys, SplitNamed("--keys", "FOLDER", text, datasets));
  keys.dataset->keys_folder = keys.value;
  return OkStatus();
}

Status LeaveOutAmbientKeys(std::string_view name, std::vector<DatasetSource>& datasets) {
  const auto dataset = std::ranges::find(datasets, name, &DatasetSource::name);
  if (dataset == datasets.end()) {
    return {Code::kInvalidArgument,
            "--no-ambient-keys '" + std::string(name) + "' is not the NAME of a --dataset"};
  }
  dataset->ambient_keys = false;
  return OkStatus();
}

Result<double> ParseRequestRate(std::string_view text) {
  double rate = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), rate, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(rate > 0) || rate > 1e6) {
    return Error(Code::kInvalidArgument,
                 "'" + std::string(text) + "' requests a second: allowed: above 0, up to 1000000");
  }
  return rate;
}

Result<double> ParseByteRate(std::string_view text) {
  ASSIGN_OR_RETURN(const ByteCount bytes, ParseQuantity(text));
  if (bytes == 0) return Error(Code::kInvalidArgument, "0 bytes a second: allowed: above 0");
  return static_cast<double>(bytes);
}

Status AddRequestRate(std::string_view text, std::vector<DatasetSource>& datasets) {
  ASSIGN_OR_RETURN(const NamedValue named,
                   SplitNamed("--requests-per-second", "N", text, datasets));
  ASSIGN_OR_RETURN(named.dataset->rates.requests_per_second, ParseRequestRate(named.value));
  return OkStatus();
}

Status AddByteRate(std::string_view text, std::vector<DatasetSource>& datasets) {
  ASSIGN_OR_RETURN(const NamedValue named,
                   SplitNamed("--bytes-per-second", "BYTES", text, datasets));
  ASSIGN_OR_RETURN(named.dataset->rates.bytes_per_second, ParseByteRate(named.value));
  return OkStatus();
}

static_assert(storage::RetryOptions().patience == dataset::kPatience);

Status AddPatience(std::string_view text, std::vector<DatasetSource>& datasets) {
  ASSIGN_OR_RETURN(const NamedValue named, SplitNamed("--patience", "10m", text, datasets));
  const Result<Duration> patience = dataset::ParsePatience(named.value);
  if (!patience) return Status(patience.error()).WithContext("--patience " + named.dataset->name);
  named.dataset->patience = *patience;
  return OkStatus();
}

Status AddPricePerRequest(std::string_view text, std::vector<DatasetSource>& datasets) {
  return AddPrice("--price-per-request", text, &dataset::StorePrice::per_request, datasets);
}

Status AddPricePerGib(std::string_view text, std::vector<DatasetSource>& datasets) {
  return AddPrice("--price-per-gib", text, &dataset::StorePrice::per_gib, datasets);
}

storage::OpenOptions OpenOptionsOf(const DatasetSource& source, storage::OpenOptions common) {
  common.keys_folder = source.keys_folder;
  common.ambient_keys = source.ambient_keys;
  common.rates = source.rates;
  common.retry.patience = source.patience;
  return common;
}

Result<std::unique_ptr<storage::ObjectStore>> OpenStoreOf(const DatasetSource& source,
                                                          const storage::OpenOptions& common) {
  return storage::OpenStore(source.store_uri, OpenOptionsOf(source, common));
}

Result<UniqueFd> SealedCopyOf(const std::string& manifest_file) {
  ASSIGN_OR_RETURN(const SharedBytes bytes, SharedBytes::Map(manifest_file, kManifestBytesMax));
  return handoff::MakeSealedCopy("optcache-manifest", AsBytes(bytes.view()));
}

std::optional<StorePlace> ServedDataset::PlaceOf(SampleId id) const {
  if (manifest_.layout() == dataset::Layout::kObjects) return std::nullopt;
  const storage::SampleRange range = storage::RangeOf(manifest_, id);
  if (!storage::NeedsRead(manifest_, range)) return std::nullopt;
  return StorePlace{.object = range.object, .begin = range.begin, .end = range.end};
}

std::optional<ByteCount> ServedDataset::StoreBytesOf(SampleId id) const {
  const storage::SampleRange range = storage::RangeOf(manifest_, id);
  if (!storage::NeedsRead(manifest_, range)) return std::nullopt;
  return range.length();
}

ServedDataset::ServedDataset(std::string name, dataset::Manifest manifest, UniqueFd manifest_fd,
                             std::unique_ptr<storage::ObjectStore> store,
                             const dataset::StorePrice& price)
    : name_(std::move(name)),
      key_(dataset::KeyOf(name_, dataset::ToHex(manifest.digest()))),
      manifest_(std::move(manifest)),
      manifest_fd_(std::move(manifest_fd)),
      store_(std::move(store)),
      price_(price) {}

Result<std::unique_ptr<ServedDataset>> ServedDataset::Open(const DatasetSource& source,
                                                           const storage::OpenOptions& options) {
  auto copy = SealedCopyOf(source.manifest_file);
  if (!copy) {
    return Error(
        std::move(copy).error().WithContext("dataset '" + source.name + "': read its manifest"));
  }
  ASSIGN_OR_RETURN(auto store, OpenStoreOf(source, options));
  auto served = Make(source.name, *std::move(copy), store, source.price);
  if (!served) return Error(std::move(served).error().WithContext(source.manifest_file));
  return served;
}

Result<std::unique_ptr<ServedDataset>> ServedDataset::Make(
    std::string name, UniqueFd manifest, std::unique_ptr<storage::ObjectStore>& store,
    const dataset::StorePrice& price) {
  ASSIGN_OR_RETURN(SharedBytes bytes,
                   SharedBytes::Map(manifest.get(), "the manifest", kManifestBytesMax));
  auto parsed = dataset::Manifest::Parse(std::move(bytes));
  if (!parsed) return Error(std::move(parsed).error().WithContext("dataset '" + name + "'"));
  return std::unique_ptr<ServedDataset>(new ServedDataset(
      std::move(name), *std::move(parsed), std::move(manifest), std::move(store), price));
}

}  // namespace optcache::sidecar
