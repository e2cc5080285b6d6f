#pragma once

#include <string>
#include <vector>

#include "dataset/manifest.h"

namespace optcache::dataset {

// Makes a manifest from samples given in the order of their numbers. Not thread-safe: one owner.
class ManifestBuilder {
 public:
  struct Sample {
    std::string_view path;
    ByteCount size = 0;
    ClassIndex class_index = kNoClass;
    Validator validator;
    std::optional<Digest> digest;
  };

  // `classes` in rising order of their numbers; empty for a dataset without classes.
  ManifestBuilder(Order order, std::vector<std::string> classes)
      : order_(order), classes_(std::move(classes)) {}

  // kInvalidArgument names the path and what is wrong: the path itself (see the format), an ETag
  // over kETagBytesMax, a class index that does not exist, or sizes beyond 64 bits in all.
  // kResourceExhausted at 2^32 - 2 samples.
  Status Add(const Sample& sample);

  // The manifest; the builder is spent. kInvalidArgument if nothing was added or some samples have
  // a digest and others have none.
  Result<Manifest> Finish() &&;

 private:
  Order order_;
  std::vector<std::string> classes_;
  ByteCount total_bytes_ = 0;
  std::uint32_t digests_ = 0;
  bool any_modified_ = false;
  bool any_etag_ = false;
  StringTableBuilder paths_, etags_;
  std::string sizes_, class_of_, modified_, sample_digests_;
};

}  // namespace optcache::dataset
