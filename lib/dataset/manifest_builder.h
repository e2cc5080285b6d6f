#pragma once

#include <span>
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
    // Of samples in archives: where their data lies; `size` and `validator` follow from it.
    std::uint32_t shard = 0;
    std::span<const Member> members = {};
  };

  // `classes` in rising order of their numbers; empty for a dataset without classes.
  ManifestBuilder(Order order, std::vector<std::string> classes, Layout layout = Layout::kObjects)
      : order_(order), layout_(layout), classes_(std::move(classes)) {}

  // An archive, whose number is that of calls before; none under kObjects. Errors as for Add.
  Status AddShard(const Object& shard);

  // kInvalidArgument names the path and what is wrong: the path itself (see the format), an ETag
  // (see CheckETag), a class index that does not exist, or sizes beyond 64 bits in all.
  // kResourceExhausted at 2^32 - 2 samples or members.
  Status Add(const Sample& sample);

  // The manifest; the builder is spent. kInvalidArgument if nothing was added or some samples have
  // a digest and others have none.
  Result<Manifest> Finish() &&;

 private:
  Status AddPlace(const Sample& sample, ByteCount& size);

  Order order_;
  Layout layout_;
  std::vector<std::string> classes_;
  ByteCount total_bytes_ = 0;
  std::uint32_t digests_ = 0;
  bool any_modified_ = false;
  bool any_etag_ = false;
  StringTableBuilder paths_, etags_;
  std::string sizes_, class_of_, modified_, sample_digests_;
  StringTableBuilder shard_paths_, shard_etags_, member_names_;
  std::string shard_sizes_, shard_modified_, shard_of_, first_member_, offsets_, member_sizes_;
};

}  // namespace optcache::dataset
