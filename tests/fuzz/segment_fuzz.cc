// Segments on a node's disk: whatever a disk gives back, no record reaches beyond the file, and
// what is believed is written back as the same bytes. The file's size and one hole come first.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "cache/segment_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace optcache;
  using namespace optcache::cache;
  constexpr SegmentName kName{.dataset = 0x1122334455667788, .number = 7};
  std::uint32_t head[3] = {};  // how much longer the file is, the hole's begin and length
  if (size < sizeof(head)) return 0;
  std::memcpy(head, data, sizeof(head));
  const ByteSpan bytes = std::as_bytes(std::span(data, size)).subspan(sizeof(head));
  const ByteCount file_size = bytes.size() + head[0];
  const Extent hole{.begin = head[1], .end = ByteCount{head[1]} + head[2]};
  const auto records = ParseSegmentHeader(kName, bytes);
  const auto segment = ParseSegment(kName, bytes, file_size, std::span(&hole, 1));
  CHECK(records.has_value() == segment.has_value());
  if (!segment) return 0;
  CHECK(segment->records.size() <= *records);
  CHECK(segment->torn == (segment->records.size() < *records));
  CHECK(segment->extents.size() == segment->records.size());
  CHECK(segment->present.size() == segment->records.size());
  for (const Extent& extent : segment->extents)
    CHECK(extent.begin >= SegmentDataBegin(*records) && extent.end <= file_size);
  if (segment->torn) return 0;
  const std::string table = EncodeSegmentTable(kName, segment->records);
  const std::size_t end = kSegmentHeaderBytes + kSegmentRecordBytes * segment->records.size();
  const auto again = ParseSegment(kName, AsBytes(table), file_size, {});
  CHECK(again.has_value() && again->records == segment->records && end <= bytes.size());
  return 0;
}
