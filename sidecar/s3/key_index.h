#pragma once

// The samples of a dataset as a bucket has them: by key, in the order of keys. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "dataset/manifest.h"

namespace optcache::sidecar {

// A key is `prefix` and the sample's path. A sample that is a member of an archive, or a range, has
// its object's path, a slash and its own; groups of members are no objects and have none. Costs
// four bytes an archive, and four a sample if those are not numbered by path; while it is made the
// keys as text. Of several samples with one key, the one with the lowest number is found.
// Thread-safe: nothing changes it. The manifest outlives it.
class KeyIndex {
 public:
  KeyIndex(const dataset::Manifest& manifest, std::string prefix);

  std::size_t size() const { return size_; }
  SampleId IdAt(std::size_t place) const;
  std::string KeyAt(std::size_t place) const { return KeyOf(IdAt(place)); }
  std::string KeyOf(SampleId id) const;

  // The place of the first key that is not below `key`; size() if all are.
  std::size_t LowerBound(std::string_view key) const;
  // The same, at once if it is `hint` or the place after it, as when keys are gone through.
  std::size_t LowerBound(std::string_view key, std::size_t hint) const;
  std::optional<SampleId> Find(std::string_view key) const;
  // Is it the key of an archive, of which only members are known?
  bool IsArchive(std::string_view key) const;

  const dataset::Manifest& manifest() const { return *manifest_; }

 private:
  bool IsInOrder() const;
  void Sort();
  void SortArchives();

  const dataset::Manifest* manifest_;
  std::string prefix_;
  std::size_t size_;
  std::vector<SampleId> sorted_;         // by key; empty if ids are in that order
  std::vector<std::uint32_t> archives_;  // by path
};

}  // namespace optcache::sidecar
