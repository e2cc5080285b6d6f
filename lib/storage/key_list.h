#pragma once

// What is in a bucket, key by key: as the bucket lists it, or as a list that lies in it says
// (docs/formats/key-list.md).

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "storage/object_store.h"

namespace optcache::storage {

// Gathers keys into the listing of what lies below a prefix. Keys that end with a slash are
// folders, as consoles make them, and no objects. Not thread-safe: a value with one owner.
class KeyList {
 public:
  // `prefix` is empty, or ends with a slash; `self` is the key of the list, which is no sample.
  explicit KeyList(std::string prefix, std::string self = {})
      : prefix_(std::move(prefix)), self_(std::move(self)) {}

  // kInvalidArgument: no server of S3 has such a key.
  Status Add(std::string_view key, std::optional<ObjectInfo> info);
  // Of objects that may be samples.
  std::uint64_t size() const { return listing_.objects.size(); }
  const std::string& prefix() const { return prefix_; }
  // Takes what another list of the same prefix has, behind its own.
  void Merge(KeyList other);
  // In the order in which they came.
  ObjectListing Take() &&;

 private:
  std::string prefix_;
  std::string self_;
  std::set<std::string, std::less<>> folders_;
  ObjectListing listing_;
};

// Adds the lines of a text: a key, its size and perhaps its ETag, separated by tabs.
// kInvalidArgument names the line.
Status AddKeysOfText(std::string_view text, KeyList& keys);

}  // namespace optcache::storage
