#pragma once

// The sections of a manifest of major version 2, which say in which part of which shard a sample
// lies. docs/formats/manifest.md, "Samples in shards".

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "dataset/members.h"

namespace optcache::dataset::internal {

// Where a section lies in the file; absent ones have offset 0.
struct Section {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool present() const { return offset != 0; }
};

struct ShardSections {
  Section paths, sizes, modified, etags, shard_of, first_member, offsets, member_sizes, names;

  // Null: of another kind.
  Section* Of(std::uint32_t kind);
};

// The sections that every manifest has, as far as shards must fit them.
struct SampleSections {
  Section paths, sizes;
  std::uint32_t samples = 0;
  bool groups = false;  // else each sample is one member
};

// Checks all of it, so that the functions below cannot fail; kDataLoss says where it is damaged.
Status CheckShardSections(std::string_view file, const SampleSections& samples,
                          const ShardSections& shards);

std::uint32_t ShardOf(std::string_view file, const ShardSections& shards, SampleId sample);

std::vector<Member> MembersOf(std::string_view file, const SampleSections& samples,
                              const ShardSections& shards, SampleId sample);

}  // namespace optcache::dataset::internal
