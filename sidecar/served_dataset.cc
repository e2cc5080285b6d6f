#include "sidecar/served_dataset.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "handoff/memory_file.h"
#include "sidecar/manifest_client.h"

namespace optcache::sidecar {

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
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto dataset = std::ranges::find(datasets, name, &DatasetSource::name);
  if (equals == std::string_view::npos || equals + 1 == text.size() || dataset == datasets.end()) {
    return {Code::kInvalidArgument,
            "--keys '" + std::string(text) + "' is not NAME=FOLDER, with the NAME of a --dataset"};
  }
  dataset->keys_folder = text.substr(equals + 1);
  return OkStatus();
}

Result<std::unique_ptr<storage::ObjectStore>> OpenStoreOf(const DatasetSource& source,
                                                          storage::OpenOptions options) {
  options.keys_folder = source.keys_folder;
  return storage::OpenStore(source.store_uri, options);
}

Result<UniqueFd> SealedCopyOf(const std::string& manifest_file) {
  ASSIGN_OR_RETURN(const SharedBytes bytes, SharedBytes::Map(manifest_file, kManifestBytesMax));
  return handoff::MakeSealedCopy("optcache-manifest", AsBytes(bytes.view()));
}

ServedDataset::ServedDataset(std::string name, dataset::Manifest manifest, UniqueFd manifest_fd,
                             std::unique_ptr<storage::ObjectStore> store)
    : name_(std::move(name)),
      key_(dataset::KeyOf(name_, dataset::ToHex(manifest.digest()))),
      manifest_(std::move(manifest)),
      manifest_fd_(std::move(manifest_fd)),
      store_(std::move(store)) {}

Result<std::unique_ptr<ServedDataset>> ServedDataset::Open(const DatasetSource& source,
                                                           const storage::OpenOptions& options) {
  auto copy = SealedCopyOf(source.manifest_file);
  if (!copy) {
    return Error(
        std::move(copy).error().WithContext("dataset '" + source.name + "': read its manifest"));
  }
  ASSIGN_OR_RETURN(auto store, OpenStoreOf(source, options));
  auto served = Make(source.name, *std::move(copy), store);
  if (!served) return Error(std::move(served).error().WithContext(source.manifest_file));
  return served;
}

Result<std::unique_ptr<ServedDataset>> ServedDataset::Make(
    std::string name, UniqueFd manifest, std::unique_ptr<storage::ObjectStore>& store) {
  ASSIGN_OR_RETURN(SharedBytes bytes,
                   SharedBytes::Map(manifest.get(), "the manifest", kManifestBytesMax));
  auto parsed = dataset::Manifest::Parse(std::move(bytes));
  if (!parsed) return Error(std::move(parsed).error().WithContext("dataset '" + name + "'"));
  return std::unique_ptr<ServedDataset>(new ServedDataset(std::move(name), *std::move(parsed),
                                                          std::move(manifest), std::move(store)));
}

}  // namespace optcache::sidecar
