#include "sidecar/s3/key_index.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace optcache::sidecar {

using dataset::Layout;

KeyIndex::KeyIndex(const dataset::Manifest& manifest, std::string prefix)
    : manifest_(&manifest),
      prefix_(std::move(prefix)),
      size_(manifest.layout() == Layout::kGroups ? 0 : manifest.samples()) {
  if (!IsInOrder()) Sort();
  if (manifest.layout() != Layout::kObjects) SortArchives();
}

bool KeyIndex::IsInOrder() const {
  std::string before;
  for (SampleId id = 0; id < size_; ++id) {
    std::string key = KeyOf(id);
    if (id > 0 && key <= before) return false;
    before = std::move(key);
  }
  return true;
}

// By keys that lie in one text: as many strings would take several times the memory.
void KeyIndex::Sort() {
  std::string text;
  std::vector<std::uint64_t> ends;
  ends.reserve(size_);
  for (SampleId id = 0; id < size_; ++id) {
    text += KeyOf(id);
    ends.push_back(text.size());
  }
  const auto key_of = [&](SampleId id) {
    const std::uint64_t begin = id == 0 ? 0 : ends[id - 1];
    return std::string_view(text).substr(begin, ends[id] - begin);
  };
  sorted_.resize(size_);
  std::iota(sorted_.begin(), sorted_.end(), SampleId{0});
  std::ranges::sort(sorted_, [&](SampleId a, SampleId b) {
    return std::pair(key_of(a), a) < std::pair(key_of(b), b);
  });
}

void KeyIndex::SortArchives() {
  std::vector<std::string> paths;
  paths.reserve(manifest_->objects());
  for (std::uint32_t i = 0; i < manifest_->objects(); ++i)
    paths.push_back(manifest_->ObjectAt(i).path);
  archives_.resize(paths.size());
  std::iota(archives_.begin(), archives_.end(), 0U);
  std::ranges::sort(archives_, {}, [&](std::uint32_t i) { return std::string_view(paths[i]); });
}

SampleId KeyIndex::IdAt(std::size_t place) const {
  return sorted_.empty() ? static_cast<SampleId>(place) : sorted_.at(place);
}

std::string KeyIndex::KeyOf(SampleId id) const {
  if (manifest_->layout() == Layout::kObjects) return prefix_ + manifest_->Path(id);
  return prefix_ + manifest_->ObjectAt(manifest_->ObjectOf(id)).path + "/" + manifest_->Path(id);
}

std::size_t KeyIndex::LowerBound(std::string_view key) const {
  std::size_t begin = 0;
  std::size_t end = size_;
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (KeyAt(middle) < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

std::size_t KeyIndex::LowerBound(std::string_view key, std::size_t hint) const {
  for (std::size_t place = hint; place <= hint + 1 && place <= size_; ++place) {
    const bool after = place == 0 || KeyAt(place - 1) < key;
    if (after && (place == size_ || KeyAt(place) >= key)) return place;
  }
  return LowerBound(key);
}

std::optional<SampleId> KeyIndex::Find(std::string_view key) const {
  if (!key.starts_with(prefix_)) return std::nullopt;
  const std::size_t place = LowerBound(key);
  if (place == size_ || KeyAt(place) != key) return std::nullopt;
  return IdAt(place);
}

bool KeyIndex::IsArchive(std::string_view key) const {
  if (!key.starts_with(prefix_)) return false;
  const std::string path(key.substr(prefix_.size()));
  const auto path_of = [&](std::uint32_t i) { return manifest_->ObjectAt(i).path; };
  return std::ranges::binary_search(archives_, path, {}, path_of);
}

}  // namespace optcache::sidecar
