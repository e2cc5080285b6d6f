#pragma once

// Which buckets there are, and what lies in them: the samples of the datasets that a sidecar
// serves. Pure.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "sidecar/s3/key_index.h"

namespace optcache::sidecar {

// A sample as an object of a bucket. A value.
struct FoundObject {
  std::size_t dataset = 0;  // the number that Add was given
  SampleId id = 0;
  std::string key;
  ByteCount size = 0;
  std::string etag;             // quotes included; the same as long as the object is
  std::int64_t modified_s = 0;  // seconds since 1970; 0: not known
};

// What makes an object's version known to clients: the store's own ETag if it is a strong one, else
// a word that follows from the sample's digest, or from its path, size and time.
std::string ETagOf(const dataset::Manifest& manifest, SampleId id);

// One bucket: of one dataset, or of several that lie in it under different prefixes. What two of
// them have in common is the first one's.
class BucketView {
 public:
  std::optional<FoundObject> Find(std::string_view key) const;
  // Where somebody is who goes through the keys, in each dataset; begins empty.
  using Walk = std::vector<std::size_t>;
  // The first key that is not below `from`, among those of all datasets.
  std::optional<FoundObject> Next(std::string_view from, Walk& walk) const;
  // Is it the key of an archive, whose members are samples?
  bool IsArchive(std::string_view key) const;
  // Is there any object, or are all datasets groups of members of archives?
  bool HasObjects() const;
  const std::string& region() const { return region_; }

 private:
  friend class KeySpace;
  struct Part {
    std::size_t dataset = 0;
    KeyIndex index;
  };
  static FoundObject ObjectOf(const Part& part, SampleId id, std::string key);

  std::string region_;
  std::deque<Part> parts_;
};

// Not thread-safe: belongs to the event loop's thread.
class KeySpace {
 public:
  // `dataset` is how its caller knows it. `region` is the first dataset's that says one.
  void Add(std::string_view bucket, std::string region, std::size_t dataset, KeyIndex index);

  // Null if there is none of that name.
  const BucketView* Find(std::string_view bucket) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, BucketView, std::less<>> buckets_;
};

}  // namespace optcache::sidecar
