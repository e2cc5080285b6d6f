#include "storage/key_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "dataset/manifest.h"
#include "storage/listing_file.h"
#include "storage/s3_listing.h"

namespace optcache::storage {

Status KeyList::Add(std::string_view key, std::optional<ObjectInfo> info) {
  if (key.empty() || key.size() > kS3KeyBytesMax) {
    return {Code::kInvalidArgument,
            fmt::format("the key has {} bytes, and a key has 1 to {}", key.size(), kS3KeyBytesMax)};
  }
  if (!key.starts_with(prefix_) || key == self_) return OkStatus();
  const std::string_view path = key.substr(prefix_.size());
  const bool fit = dataset::CheckObjectPath(path).ok();
  // Of keys that end with a slash, too: an empty folder is a class.
  if (const size_t slash = path.find('/'); fit && slash != std::string_view::npos && slash > 0) {
    const std::string_view folder = path.substr(0, slash);
    if (!folders_.contains(folder)) folders_.emplace(folder);
  }
  if (path.empty() || path.ends_with('/')) return OkStatus();
  if (fit) {
    listing_.objects.push_back({.path = std::string(path), .info = std::move(info)});
  } else {
    listing_.unfit_keys.emplace_back(path);
  }
  return OkStatus();
}

void KeyList::Merge(KeyList other) {
  std::ranges::move(other.listing_.objects, std::back_inserter(listing_.objects));
  std::ranges::move(other.listing_.unfit_keys, std::back_inserter(listing_.unfit_keys));
  folders_.merge(other.folders_);
}

ObjectListing KeyList::Take() && {
  std::ranges::sort(listing_.unfit_keys);
  listing_.top_folders.assign(folders_.begin(), folders_.end());
  return std::move(listing_);
}

Status AddKeysOfText(std::string_view text, KeyList& keys) {
  return ReadListing(text, [&](ListingLine line) -> Status {
    if (!line.info) {
      return {Code::kInvalidArgument, "the size is missing: write the key, a tab and its bytes"};
    }
    return keys.Add(line.name, std::move(line.info));
  });
}

}  // namespace optcache::storage
