// Checks the sections that say where in which shard a sample lies, and looks samples up in them.
//
// The idea: lookups follow numbers from section to section (sample, shard, first member, offset,
// name), so a wrong number could lead out of the file. ShardChecker proves once that no number
// does. The order is that of trust: shards, keys, the counts of members, their names, and last the
// places, which use all of the former.
//
// Invariants after the check: each list has as many entries as its owner needs; the members of a
// sample rise in offset, do not overlap and lie within their shard; the size of a group is that of
// its joined members (members.h), names and padding included.

#include "dataset/internal/shard_sections.h"

#include <fmt/format.h>

#include "base/check.h"
#include "dataset/internal/little_endian.h"
#include "dataset/internal/manifest_layout.h"
#include "dataset/manifest.h"
#include "dataset/string_table.h"

namespace optcache::dataset::internal {
namespace {

Status Damaged(const Section& section, std::string_view what) {
  return {Code::kDataLoss, fmt::format("manifest: {}, section at byte {}", what, section.offset)};
}

// Checks the sections one by one, in an order in which each may rely on those before.
class ShardChecker {
 public:
  ShardChecker(std::string_view file, const SampleSections& samples, const ShardSections& shards)
      : file_(file), samples_(samples), shards_(shards) {}

  Status Check() {
    RETURN_IF_ERROR(CheckShards());
    RETURN_IF_ERROR(CheckKeys());
    RETURN_IF_ERROR(CheckMemberCounts());
    RETURN_IF_ERROR(CheckNames());
    return CheckPlaces();
  }

 private:
  template <typename Integer>
  Integer At(const Section& section, std::uint64_t index) const {
    return Load<Integer>(file_.data() + section.offset + index * sizeof(Integer));
  }
  template <typename Visit>
  Result<std::uint32_t> ForEachIn(const Section& section, std::string_view name, Visit visit) {
    Result<StringTableView> table =
        StringTableView::Open(file_.substr(section.offset, section.length));
    if (!table) return Error(Damaged(section, table.error().message()));
    const Status status = table->ForEach(visit);
    if (!status.ok()) return Error(Damaged(section, fmt::format("{}: {}", name, status.message())));
    return table->size();
  }
  Status CheckLength(const Section& section, std::string_view name, std::uint64_t length) const {
    if (section.length == length && section.present()) return OkStatus();
    return Damaged(section, fmt::format("{} of {} bytes, not {}", name, section.length, length));
  }

  Status CheckShards();
  Status CheckKeys();
  Status CheckMemberCounts();
  Status CheckNames();
  Status CheckPlaces() const;
  Status CheckPlace(SampleId sample) const;
  std::uint32_t FirstMember(std::uint64_t sample) const {
    return samples_.groups ? At<std::uint32_t>(shards_.first_member, sample)
                           : static_cast<std::uint32_t>(sample);
  }

  const std::string_view file_;
  const SampleSections& samples_;
  const ShardSections& shards_;
  std::uint32_t shard_count_ = 0;
  std::vector<std::uint32_t> text_bytes_;  // of a group's key and its members' names
};

Status ShardChecker::CheckShards() {
  ASSIGN_OR_RETURN(shard_count_,
                   ForEachIn(shards_.paths, "shards", [](std::uint32_t, std::string_view path) {
                     return CheckObjectPath(path);
                   }));
  const std::uint64_t count = shard_count_;
  RETURN_IF_ERROR(CheckLength(shards_.sizes, "sizes of shards", count * 8));
  for (std::uint32_t shard = 0; shard < shard_count_; ++shard) {
    if (At<std::uint64_t>(shards_.sizes, shard) > kShardBytesMax)
      return Damaged(shards_.sizes, fmt::format("size of shard {}", shard));
  }
  if (shards_.modified.present())
    RETURN_IF_ERROR(CheckLength(shards_.modified, "times of shards", count * 8));
  if (!shards_.etags.present()) return OkStatus();
  ASSIGN_OR_RETURN(const std::uint32_t etags,
                   ForEachIn(shards_.etags, "ETags of shards",
                             [](std::uint32_t, std::string_view etag) { return CheckETag(etag); }));
  return etags == shard_count_ ? OkStatus() : Damaged(shards_.etags, "not an ETag a shard");
}

Status ShardChecker::CheckKeys() {
  if (!samples_.groups) return OkStatus();
  text_bytes_.assign(samples_.samples, 0);
  const auto check = [&](std::uint32_t index, std::string_view key) {
    if (key.empty() || key.find('\0') != std::string_view::npos)
      return Status(Code::kDataLoss, "a key is empty or has a NUL byte");
    if (index < text_bytes_.size()) text_bytes_[index] = static_cast<std::uint32_t>(key.size());
    return OkStatus();
  };
  ASSIGN_OR_RETURN(const std::uint32_t keys, ForEachIn(samples_.paths, "keys", check));
  return keys == samples_.samples ? OkStatus() : Damaged(samples_.paths, "not a key a sample");
}

Status ShardChecker::CheckMemberCounts() {
  const std::uint64_t samples = samples_.samples;
  RETURN_IF_ERROR(CheckLength(shards_.shard_of, "shards of samples", samples * 4));
  if (!samples_.groups) {
    if (shards_.first_member.present() || shards_.member_sizes.present() ||
        shards_.names.present()) {
      return Damaged(shards_.first_member, "groups where each sample is one member");
    }
    return CheckLength(shards_.offsets, "offsets", samples * 8);
  }
  RETURN_IF_ERROR(CheckLength(shards_.first_member, "members of samples", (samples + 1) * 4));
  if (FirstMember(0) != 0) return Damaged(shards_.first_member, "members do not begin at 0");
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const std::uint32_t first = FirstMember(sample);
    const std::uint32_t end = FirstMember(sample + 1);
    if (end <= first || end - first > kMembersMax)
      return Damaged(shards_.first_member, fmt::format("members of sample {}", sample));
  }
  const std::uint64_t members = FirstMember(samples);
  RETURN_IF_ERROR(CheckLength(shards_.offsets, "offsets", members * 8));
  return CheckLength(shards_.member_sizes, "sizes of members", members * 8);
}

Status ShardChecker::CheckNames() {
  if (!samples_.groups) return OkStatus();
  const std::uint32_t members = FirstMember(samples_.samples);
  SampleId sample = 0;
  const auto count = [&](std::uint32_t index, std::string_view name) {
    if (index >= members) return OkStatus();  // found below
    while (FirstMember(sample + std::uint64_t{1}) <= index)
      ++sample;
    text_bytes_[sample] += static_cast<std::uint32_t>(name.size());
    return OkStatus();
  };
  ASSIGN_OR_RETURN(const std::uint32_t names, ForEachIn(shards_.names, "names of members", count));
  return names == members ? OkStatus() : Damaged(shards_.names, "not a name a member");
}

Status ShardChecker::CheckPlace(SampleId sample) const {
  const auto shard = At<std::uint32_t>(shards_.shard_of, sample);
  if (shard >= shard_count_) return Damaged(shards_.shard_of, "no such shard");
  const auto shard_size = At<std::uint64_t>(shards_.sizes, shard);
  ByteCount end = 0;
  ByteCount total = 0;
  for (std::uint32_t member = FirstMember(sample); member < FirstMember(sample + std::uint64_t{1});
       ++member) {
    const auto offset = At<std::uint64_t>(shards_.offsets, member);
    const auto size =
        At<std::uint64_t>(samples_.groups ? shards_.member_sizes : samples_.sizes, member);
    if (offset < end || offset > shard_size || size > shard_size - offset)
      return Damaged(shards_.offsets, fmt::format("a member of sample {} lies elsewhere", sample));
    end = offset + size;
    total += size + MemberPadding(size);  // they do not overlap, so this stays far below 2^64
  }
  if (!samples_.groups) return OkStatus();
  const ByteCount members = FirstMember(sample + std::uint64_t{1}) - FirstMember(sample);
  ByteCount head = kMembersFixedBytes + members * kMemberHeadBytes + text_bytes_[sample];
  head += MemberPadding(head);
  if (total + head != At<std::uint64_t>(samples_.sizes, sample))
    return Damaged(samples_.sizes, fmt::format("size of sample {}", sample));
  return OkStatus();
}

Status ShardChecker::CheckPlaces() const {
  for (SampleId sample = 0; sample < samples_.samples; ++sample)
    RETURN_IF_ERROR(CheckPlace(sample));
  return OkStatus();
}

}  // namespace

Section* ShardSections::Of(std::uint32_t kind) {
  switch (kind) {
    case kShardPaths:
      return &paths;
    case kShardSizes:
      return &sizes;
    case kShardModified:
      return &modified;
    case kShardETags:
      return &etags;
    case kShardOf:
      return &shard_of;
    case kFirstMember:
      return &first_member;
    case kMemberOffsets:
      return &offsets;
    case kMemberSizes:
      return &member_sizes;
    case kMemberNames:
      return &names;
    default:
      return nullptr;
  }
}

Status CheckShardSections(std::string_view file, const SampleSections& samples,
                          const ShardSections& shards) {
  return ShardChecker(file, samples, shards).Check();
}

std::uint32_t ShardOf(std::string_view file, const ShardSections& shards, SampleId sample) {
  return Load<std::uint32_t>(file.data() + shards.shard_of.offset + sample * std::uint64_t{4});
}

std::vector<Member> MembersOf(std::string_view file, const SampleSections& samples,
                              const ShardSections& shards, SampleId sample) {
  const auto number = [&](const Section& section, std::uint64_t index) {
    return Load<std::uint64_t>(file.data() + section.offset + index * 8);
  };
  if (!samples.groups) {
    return {{.name = {},
             .offset = number(shards.offsets, sample),
             .size = number(samples.sizes, sample)}};
  }
  const char* const first = file.data() + shards.first_member.offset + sample * std::uint64_t{4};
  const auto names = StringTableView::Open(file.substr(shards.names.offset, shards.names.length));
  CHECK(names.has_value());
  std::vector<Member> members;
  for (auto member = Load<std::uint32_t>(first); member < Load<std::uint32_t>(first + 4);
       ++member) {
    members.push_back({.name = names->At(member),
                       .offset = number(shards.offsets, member),
                       .size = number(shards.member_sizes, member)});
  }
  return members;
}

}  // namespace optcache::dataset::internal
