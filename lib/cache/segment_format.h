#pragma once

// The bytes of a segment: a file with the samples that a node keeps on its disk, written once. The
// beginning of the file says what lies where. Specified in docs/formats/segment.md. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "cache/memory_tier.h"

namespace optcache::cache {

inline constexpr ByteCount kSegmentBlock = 4_KiB;
inline constexpr ByteCount kSegmentHeaderBytes = 32;
inline constexpr ByteCount kSegmentRecordBytes = 40;
inline constexpr std::uint32_t kSegmentRecordsMax = 65'536;

// Which segment of which dataset.
struct SegmentName {
  std::uint64_t dataset = 0;  // its key
  std::uint64_t number = 0;
  friend bool operator==(const SegmentName&, const SegmentName&) = default;
};

// A sample in a segment.
struct SegmentRecord {
  SampleId id = 0;
  std::uint32_t length = 0;
  std::uint32_t crc = 0;  // of its bytes
  KeptAfter kept_after;
  friend bool operator==(const SegmentRecord&, const SegmentRecord&) = default;
};

// Bytes [begin, end) of a file.
struct Extent {
  ByteCount begin = 0;
  ByteCount end = 0;
  ByteCount size() const { return end - begin; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

constexpr ByteCount RoundUpToBlock(ByteCount bytes) {
  return (bytes + kSegmentBlock - 1) / kSegmentBlock * kSegmentBlock;
}
constexpr ByteCount RoundDownToBlock(ByteCount bytes) {
  return bytes / kSegmentBlock * kSegmentBlock;
}

// Where the first sample begins in a segment of this many records.
constexpr ByteCount SegmentDataBegin(std::uint32_t records) {
  return RoundUpToBlock(kSegmentHeaderBytes + kSegmentRecordBytes * records);
}

// Size of the file with these records.
ByteCount SegmentFileBytes(std::span<const SegmentRecord> records);
// Where each sample lies, in the order of the records.
std::vector<Extent> SegmentExtents(std::span<const SegmentRecord> records, std::uint32_t in_file);

// Header and records, up to where the first sample begins. 1 to kSegmentRecordsMax records.
std::string EncodeSegmentTable(const SegmentName& name, std::span<const SegmentRecord> records);

// The number of records, from the first kSegmentHeaderBytes of a file or more. kDataLoss: it is no
// whole header, or another segment's; kInvalidArgument: of a version that this program does not
// know.
Result<std::uint32_t> ParseSegmentHeader(const SegmentName& name, ByteSpan bytes);

// What is left of a segment.
struct Segment {
  std::vector<SegmentRecord> records;  // whole ones, from the first on without a gap
  std::vector<Extent> extents;         // of each: where its bytes lie
  std::vector<bool> present;           // of each: they are all there, as far as a look can tell
  bool torn = false;                   // there were more records
};

// From the beginning of a file, SegmentDataBegin bytes of it or all there are, with its size and
// its holes, ascending. Errors as above.
Result<Segment> ParseSegment(const SegmentName& name, ByteSpan bytes, ByteCount file_size,
                             std::span<const Extent> holes);

// A segment that a start finds.
struct FoundSegment {
  SegmentName name;
  Segment segment;
  ByteCount file_bytes = 0;   // that it takes on the disk
  std::vector<Extent> holes;  // of the file, ascending
  // An error: its file could not be read and stays; what samples it has is not known.
  Status status = OkStatus();
};

// "00000000000000a1.segment", and back; nothing if a file is not named like this.
std::string SegmentFileName(std::uint64_t number);
std::optional<std::uint64_t> ParseSegmentFileName(std::string_view name);
// The folder of a dataset: its key.
std::string SegmentFolderName(std::uint64_t dataset);
std::optional<std::uint64_t> ParseSegmentFolderName(std::string_view name);

}  // namespace optcache::cache
