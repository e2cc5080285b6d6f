// Writes and reads a segment's table: a header of 32 bytes, and a record of 40 bytes a sample.
//
// The idea: the table alone says where each sample lies. Samples follow one another without a gap
// from the first block after the table on, so a record needs a length and no offset. A record's
// checksum covers the segment's name and the record's place: a record of another file, or of
// another place, is not taken for this one. ParseSegment stops at the first record that is torn,
// because the place of all later ones follows from its length. A sample that a hole touches is not
// present.

#include "cache/segment_format.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"

namespace optcache::cache {
namespace {

constexpr std::string_view kMagic = "OCSEGM01";
constexpr std::size_t kMagicNameBytes = 6;  // the rest is the version
constexpr std::string_view kSuffix = ".segment";
constexpr std::size_t kHexDigits = 16;

void Put(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint64_t Get(ByteSpan bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

std::uint32_t Get32(ByteSpan bytes, std::size_t at) {
  return static_cast<std::uint32_t>(Get(bytes, at, 4));
}

std::uint32_t RecordCrc(const SegmentName& name, std::uint32_t place, ByteSpan fields) {
  std::string bound;
  Put(bound, name.dataset, 8);
  Put(bound, name.number, 8);
  Put(bound, place, 4);
  return Crc32c(fields, Crc32c(AsBytes(bound)));
}

void PutRecord(std::string& out, const SegmentName& name, std::uint32_t place,
               const SegmentRecord& record) {
  const std::size_t begin = out.size();
  Put(out, record.id, 4);
  Put(out, record.length, 4);
  Put(out, record.crc, 4);
  Put(out, record.kept_after.pass, 4);
  Put(out, record.kept_after.stream, 8);
  Put(out, record.kept_after.position, 8);
  Put(out, 0, 4);
  Put(out, RecordCrc(name, place, AsBytes(std::string_view(out).substr(begin))), 4);
}

std::optional<SegmentRecord> GetRecord(const SegmentName& name, std::uint32_t place,
                                       ByteSpan bytes) {
  constexpr std::size_t kFields = kSegmentRecordBytes - 4;
  if (Get32(bytes, kFields) != RecordCrc(name, place, bytes.first(kFields))) return std::nullopt;
  return SegmentRecord{
      .id = Get32(bytes, 0),
      .length = Get32(bytes, 4),
      .crc = Get32(bytes, 8),
      .kept_after = {
          .stream = Get(bytes, 16, 8), .pass = Get32(bytes, 12), .position = Get(bytes, 24, 8)}};
}

bool Overlaps(std::span<const Extent> holes, const Extent& extent) {
  if (extent.size() == 0) return false;
  const auto after = std::ranges::lower_bound(holes, extent.end, {}, &Extent::begin);
  return after != holes.begin() && std::prev(after)->end > extent.begin;
}

std::optional<std::uint64_t> ParseHex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool plain = std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'F'; });
  if (text.size() != kHexDigits || error != std::errc() || end != text.data() + text.size() ||
      !plain) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::vector<Extent> SegmentExtents(std::span<const SegmentRecord> records, std::uint32_t in_file) {
  std::vector<Extent> extents;
  extents.reserve(records.size());
  ByteCount begin = SegmentDataBegin(in_file);
  for (const SegmentRecord& record : records) {
    extents.push_back({.begin = begin, .end = begin + record.length});
    begin += record.length;
  }
  return extents;
}

ByteCount SegmentFileBytes(std::span<const SegmentRecord> records) {
  ByteCount end = SegmentDataBegin(static_cast<std::uint32_t>(records.size()));
  for (const SegmentRecord& record : records)
    end += record.length;
  return RoundUpToBlock(end);
}

std::string EncodeSegmentTable(const SegmentName& name, std::span<const SegmentRecord> records) {
  CHECK(!records.empty() && records.size() <= kSegmentRecordsMax);
  const auto count = static_cast<std::uint32_t>(records.size());
  std::string table(kMagic);
  Put(table, name.dataset, 8);
  Put(table, name.number, 8);
  Put(table, count, 4);
  Put(table, Crc32c(AsBytes(table)), 4);
  for (std::uint32_t i = 0; i < count; ++i)
    PutRecord(table, name, i, records[i]);
  table.resize(SegmentDataBegin(count));
  return table;
}

Result<std::uint32_t> ParseSegmentHeader(const SegmentName& name, ByteSpan bytes) {
  if (bytes.size() < kSegmentHeaderBytes) {
    return Error(Code::kDataLoss, fmt::format("no segment: it ends after {} bytes", bytes.size()));
  }
  const std::string_view magic = AsText(bytes.first(kMagic.size()));
  if (magic.substr(0, kMagicNameBytes) != kMagic.substr(0, kMagicNameBytes)) {
    return Error(Code::kDataLoss, "no segment: it begins with other bytes");
  }
  if (magic != kMagic) {
    return Error(Code::kInvalidArgument, "a segment of another version of this program");
  }
  if (Get32(bytes, 28) != Crc32c(bytes.first(28))) {
    return Error(Code::kDataLoss, "the segment's header has a wrong checksum");
  }
  if (Get(bytes, 8, 8) != name.dataset || Get(bytes, 16, 8) != name.number) {
    return Error(Code::kDataLoss, "the segment's header is that of another segment");
  }
  const std::uint32_t records = Get32(bytes, 24);
  if (records == 0 || records > kSegmentRecordsMax) {
    return Error(Code::kDataLoss, fmt::format("the segment has {} records, allowed: 1 to {}",
                                              records, kSegmentRecordsMax));
  }
  return records;
}

Result<Segment> ParseSegment(const SegmentName& name, ByteSpan bytes, ByteCount file_size,
                             std::span<const Extent> holes) {
  ASSIGN_OR_RETURN(const std::uint32_t in_file, ParseSegmentHeader(name, bytes));
  Segment segment;
  ByteCount end = SegmentDataBegin(in_file);
  for (std::uint32_t i = 0; i < in_file; ++i) {
    const ByteCount at = kSegmentHeaderBytes + kSegmentRecordBytes * i;
    if (at + kSegmentRecordBytes > bytes.size()) break;
    const auto record = GetRecord(name, i, bytes.subspan(at, kSegmentRecordBytes));
    if (!record || end + record->length > file_size) break;
    end += record->length;
    segment.records.push_back(*record);
  }
  segment.torn = segment.records.size() < in_file;
  segment.extents = SegmentExtents(segment.records, in_file);
  segment.present.reserve(segment.extents.size());
  for (const Extent& extent : segment.extents)
    segment.present.push_back(!Overlaps(holes, extent));
  return segment;
}

std::string SegmentFileName(std::uint64_t number) {
  return fmt::format("{:016x}{}", number, kSuffix);
}

std::optional<std::uint64_t> ParseSegmentFileName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  return ParseHex(name.substr(0, name.size() - kSuffix.size()));
}

std::string SegmentFolderName(std::uint64_t dataset) {
  return fmt::format("{:016x}", dataset);
}

std::optional<std::uint64_t> ParseSegmentFolderName(std::string_view name) {
  return ParseHex(name);
}

}  // namespace optcache::cache
