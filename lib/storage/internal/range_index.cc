#include "storage/internal/range_index.h"

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/check.h"
#include "dataset/npy.h"
#include "dataset/ranges_csv.h"
#include "storage/internal/blocking_read.h"

namespace optcache::storage::internal {
namespace {

using dataset::RangeIndex;

constexpr ByteCount kNpyFirstRead = 4_KiB;  // numpy's headers have 128 bytes, or some more

// The first bytes of an index, which lie within it.
Result<std::string> ReadFront(ObjectStore& store, const ListedObject& index, ByteCount length,
                              Deadline deadline) {
  std::string bytes(length, '\0');
  if (length == 0) return bytes;
  RETURN_IF_ERROR(
      ReadAndWait(store, {.object = index.path,
                          .offset = 0,
                          .destination = MutableByteSpan(std::as_writable_bytes(std::span(bytes))),
                          .object_size = index.info->size,
                          .validator = index.info->validator,
                          .deadline = deadline}));
  return bytes;
}

Result<std::string> ReadWhole(ObjectStore& store, const ListedObject& index, Deadline deadline) {
  if (index.info->size > dataset::kRangeIndexBytesMax) {
    return Error(Code::kInvalidArgument,
                 fmt::format("an index of {} bytes: the limit is {}, so divide it into several",
                             index.info->size, dataset::kRangeIndexBytesMax));
  }
  return ReadFront(store, index, index.info->size, deadline);
}

Result<RangeIndex> ReadCsv(ObjectStore& store, const ListedObject& index, Deadline deadline) {
  ASSIGN_OR_RETURN(const std::string text, ReadWhole(store, index, deadline));
  return dataset::ParseRangesCsv(text);
}

Result<RangeIndex> ReadNpy(ObjectStore& store, const ListedObject& array, Deadline deadline) {
  const ByteCount size = array.info->size;
  ASSIGN_OR_RETURN(std::string front,
                   ReadFront(store, array, std::min(size, kNpyFirstRead), deadline));
  ASSIGN_OR_RETURN(const ByteCount header, dataset::NpyHeaderBytes(front));
  if (header > front.size() && header <= size) {
    ASSIGN_OR_RETURN(front, ReadFront(store, array, header, deadline));
  }
  return dataset::ParseNpy(array.path, std::string_view(front).substr(0, header), size);
}

}  // namespace

std::string_view UsualIndexes(IndexFormat format) {
  return format == IndexFormat::kNpy ? "**/*.npy" : "ranges.csv";
}

bool AreIndexesShort(IndexFormat format) {
  return format == IndexFormat::kNpy;
}

Result<RangeIndex> ReadRangeIndex(ObjectStore& store, const ListedObject& index, IndexFormat format,
                                  Deadline deadline) {
  CHECK(index.info.has_value());
  return format == IndexFormat::kNpy ? ReadNpy(store, index, deadline)
                                     : ReadCsv(store, index, deadline);
}

}  // namespace optcache::storage::internal
