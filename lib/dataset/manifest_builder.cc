// Collects the columns of a manifest while samples are added, and joins them to a file.
//
// The idea: each section grows as the bytes that it will have, so Finish only puts them one after
// the other. Assemble writes the table first, since all lengths are known, and drops each section
// as soon as it is in the file, so that a large manifest does not stand in memory twice. Sections
// that say nothing (no times, no ETags, no classes) are left out.
//
// Add checks what only the caller can mend, with the path in the message. Everything else is
// checked by Manifest::Parse on the finished bytes.

#include "dataset/manifest_builder.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "dataset/internal/little_endian.h"
#include "dataset/internal/manifest_layout.h"

namespace optcache::dataset {
namespace {

using internal::Append;

struct Piece {
  std::uint32_t kind;
  std::string content;
};

struct Head {
  Order order;
  std::uint64_t samples;
  std::uint32_t classes;
  Layout layout;
  ByteCount total_bytes;
};

std::string Assemble(const Head& head, std::vector<Piece> pieces) {
  const std::uint64_t table_end =
      internal::kHeaderBytes + pieces.size() * internal::kSectionEntryBytes;
  std::string table;
  std::uint64_t end = table_end;
  for (const Piece& piece : pieces) {
    const std::uint64_t offset = internal::Align(end);
    Append<std::uint32_t>(table, piece.kind);
    Append<std::uint32_t>(table, Crc32c(AsBytes(piece.content)));
    Append<std::uint64_t>(table, offset);
    Append<std::uint64_t>(table, piece.content.size());
    end = offset + piece.content.size();
  }
  std::string file;
  file.reserve(end);
  file += internal::kMagic;
  Append<std::uint16_t>(
      file, head.layout == Layout::kObjects ? internal::kMajorOfObjects : internal::kMajorOfShards);
  Append<std::uint16_t>(file, internal::kMinorVersion);
  Append<std::uint32_t>(file, static_cast<std::uint32_t>(head.order));
  Append<std::uint64_t>(file, head.samples);
  Append<std::uint32_t>(file, head.classes);
  Append<std::uint32_t>(file, static_cast<std::uint32_t>(pieces.size()));
  Append<std::uint64_t>(file, head.total_bytes);
  Append<std::uint64_t>(file, end);
  Append<std::uint32_t>(file, static_cast<std::uint32_t>(head.layout));
  file.resize(internal::kHeaderCrcOffset, '\0');
  Append<std::uint32_t>(file, Crc32c(AsBytes(table), Crc32c(AsBytes(file))));
  file += table;
  for (Piece& piece : pieces) {
    file.resize(internal::Align(file.size()), '\0');
    file += piece.content;
    piece.content = std::string();  // a large manifest should not stand in memory twice
  }
  return file;
}

Status CheckKey(std::string_view key) {
  if (!key.empty() && key.size() <= kStringBytesMax && key.find('\0') == std::string_view::npos)
    return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("key \"{}\" is empty, has a NUL byte or more than {} bytes", key,
                      kStringBytesMax)};
}

}  // namespace

Status ManifestBuilder::Add(const Sample& sample) {
  RETURN_IF_ERROR(layout_ == Layout::kGroups ? CheckKey(sample.path)
                                             : CheckObjectPath(sample.path));
  RETURN_IF_ERROR(CheckETag(sample.validator.etag).WithContext(sample.path));
  if (classes_.empty() ? sample.class_index != kNoClass : sample.class_index >= classes_.size()) {
    return {Code::kInvalidArgument, fmt::format("{}: class {} of {} does not exist", sample.path,
                                                sample.class_index, classes_.size())};
  }
  if (paths_.size() == internal::kSamplesMax) {
    return {Code::kResourceExhausted, "a manifest holds at most 4,294,967,294 samples"};
  }
  ByteCount size = sample.size;
  if (layout_ != Layout::kObjects) RETURN_IF_ERROR(AddPlace(sample, size));
  if (__builtin_add_overflow(total_bytes_, size, &total_bytes_)) {
    return {Code::kInvalidArgument,
            fmt::format("{}: sizes add up beyond 64 bits here", sample.path)};
  }
  paths_.Add(sample.path);
  Append<std::uint64_t>(sizes_, size);
  if (layout_ == Layout::kObjects) {
    etags_.Add(sample.validator.etag);
    Append<std::int64_t>(modified_, sample.validator.modified_ns);
    any_modified_ = any_modified_ || sample.validator.modified_ns != 0;
    any_etag_ = any_etag_ || !sample.validator.etag.empty();
  }
  if (!classes_.empty()) Append<std::uint32_t>(class_of_, sample.class_index);
  if (sample.digest) {
    sample_digests_ += AsText(*sample.digest);
    ++digests_;
  }
  return OkStatus();
}

Status ManifestBuilder::AddShard(const Object& shard) {
  CHECK(layout_ != Layout::kObjects);
  RETURN_IF_ERROR(CheckObjectPath(shard.path));
  RETURN_IF_ERROR(CheckETag(shard.validator.etag).WithContext(shard.path));
  shard_paths_.Add(shard.path);
  shard_etags_.Add(shard.validator.etag);
  Append<std::uint64_t>(shard_sizes_, shard.size);
  Append<std::int64_t>(shard_modified_, shard.validator.modified_ns);
  any_modified_ = any_modified_ || shard.validator.modified_ns != 0;
  any_etag_ = any_etag_ || !shard.validator.etag.empty();
  return OkStatus();
}

// Where the sample's data lies; `size` becomes that of what is handed out.
Status ManifestBuilder::AddPlace(const Sample& sample, ByteCount& size) {
  const std::vector<Member> members(sample.members.begin(), sample.members.end());
  if (layout_ == Layout::kMembers) {
    CHECK(members.size() == 1);
    size = members.front().size;
    Append<std::uint64_t>(offsets_, members.front().offset);
  } else {
    ASSIGN_OR_RETURN(size, MembersSize(sample.path, members));
    Append<std::uint32_t>(first_member_, member_names_.size());
    if (members.size() > internal::kSamplesMax - member_names_.size())
      return {Code::kResourceExhausted, "a manifest holds at most 4,294,967,294 members"};
    for (const Member& member : members) {
      if (member.name.size() > kStringBytesMax) {
        return {Code::kInvalidArgument, fmt::format("{}.{}: its name has more than {} bytes",
                                                    sample.path, member.name, kStringBytesMax)};
      }
      member_names_.Add(member.name);
      Append<std::uint64_t>(offsets_, member.offset);
      Append<std::uint64_t>(member_sizes_, member.size);
    }
  }
  Append<std::uint32_t>(shard_of_, sample.shard);
  return OkStatus();
}

Result<Manifest> ManifestBuilder::Finish() && {
  const std::uint32_t samples = paths_.size();
  if (samples == 0) return Error(Code::kInvalidArgument, "a manifest needs at least one sample");
  if (digests_ != 0 && digests_ != samples) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} of {} samples have a digest: give all of them one, or none",
                             digests_, samples));
  }
  const Head head = {.order = order_,
                     .samples = samples,
                     .classes = static_cast<std::uint32_t>(classes_.size()),
                     .layout = layout_,
                     .total_bytes = total_bytes_};
  std::vector<Piece> pieces;
  pieces.push_back({internal::kPaths, std::move(paths_).Finish()});
  pieces.push_back({internal::kSizes, std::move(sizes_)});
  if (!classes_.empty()) {
    StringTableBuilder names;
    for (const std::string& name : classes_)
      names.Add(name);
    pieces.push_back({internal::kClassOf, std::move(class_of_)});
    pieces.push_back({internal::kClassNames, std::move(names).Finish()});
  }
  const bool whole = layout_ == Layout::kObjects;
  if (whole && any_modified_) pieces.push_back({internal::kModified, std::move(modified_)});
  if (whole && any_etag_) pieces.push_back({internal::kETags, std::move(etags_).Finish()});
  if (digests_ != 0) pieces.push_back({internal::kSampleDigests, std::move(sample_digests_)});
  if (!whole) {
    pieces.push_back({internal::kShardPaths, std::move(shard_paths_).Finish()});
    pieces.push_back({internal::kShardSizes, std::move(shard_sizes_)});
    if (any_modified_) pieces.push_back({internal::kShardModified, std::move(shard_modified_)});
    if (any_etag_) pieces.push_back({internal::kShardETags, std::move(shard_etags_).Finish()});
    pieces.push_back({internal::kShardOf, std::move(shard_of_)});
    if (layout_ == Layout::kGroups) {
      Append<std::uint32_t>(first_member_, member_names_.size());
      pieces.push_back({internal::kFirstMember, std::move(first_member_)});
    }
    pieces.push_back({internal::kMemberOffsets, std::move(offsets_)});
    if (layout_ == Layout::kGroups) {
      pieces.push_back({internal::kMemberSizes, std::move(member_sizes_)});
      pieces.push_back({internal::kMemberNames, std::move(member_names_).Finish()});
    }
  }
  // The parser is the one judge of what a manifest is.
  return Manifest::Parse(Assemble(head, std::move(pieces)));
}

}  // namespace optcache::dataset
