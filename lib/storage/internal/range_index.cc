#include "storage/internal/range_index.h"

#include <string>

#include <fmt/format.h>

#include "base/check.h"
#include "dataset/ranges_csv.h"
#include "storage/internal/blocking_read.h"

namespace optcache::storage::internal {
namespace {

using dataset::RangeIndex;

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

}  // namespace

std::string_view UsualIndexes(IndexFormat /*format*/) {
  return "ranges.csv";
}

bool AreIndexesShort(IndexFormat /*format*/) {
  return false;
}

Result<RangeIndex> ReadRangeIndex(ObjectStore& store, const ListedObject& index,
                                  IndexFormat /*format*/, Deadline deadline) {
  CHECK(index.info.has_value());
  ASSIGN_OR_RETURN(const std::string text, ReadWhole(store, index, deadline));
  return dataset::ParseRangesCsv(text);
}

}  // namespace optcache::storage::internal
