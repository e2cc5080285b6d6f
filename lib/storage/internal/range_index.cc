#include "storage/internal/range_index.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "dataset/megatron_idx.h"
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

Result<RangeIndex> ReadMegatron(ObjectStore& store, const ListedObject& index, Deadline deadline) {
  std::string bin = dataset::MegatronBinPath(index.path);
  if (bin.empty()) {
    return Error(Code::kInvalidArgument,
                 "an index of Megatron-LM is named NAME.idx, and lies beside NAME.bin");
  }
  ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(store, index, deadline));
  return dataset::ParseMegatronIdx(bytes, std::move(bin));
}

struct RangeFormat {
  dataset::Format format;
  std::string_view usual;  // pattern
  bool short_indexes;
  Result<RangeIndex> (*read)(ObjectStore&, const ListedObject&, Deadline);
};

constexpr std::array<RangeFormat, 3> kRangeFormats = {
    RangeFormat{.format = dataset::Format::kRanges,
                .usual = "ranges.csv",
                .short_indexes = false,
                .read = ReadCsv},
    RangeFormat{.format = dataset::Format::kNpy,
                .usual = "**/*.npy",
                .short_indexes = true,
                .read = ReadNpy},
    RangeFormat{.format = dataset::Format::kMegatron,
                .usual = "**/*.idx",
                .short_indexes = false,
                .read = ReadMegatron}};

const RangeFormat& RangeFormatOf(dataset::Format format) {
  const auto* const found = std::ranges::find(kRangeFormats, format, &RangeFormat::format);
  CHECK(found != kRangeFormats.end());
  return *found;
}

}  // namespace

std::string_view UsualIndexes(dataset::Format format) {
  return RangeFormatOf(format).usual;
}

bool AreIndexesShort(dataset::Format format) {
  return RangeFormatOf(format).short_indexes;
}

Result<RangeIndex> ReadRangeIndex(ObjectStore& store, const ListedObject& index,
                                  dataset::Format format, Deadline deadline) {
  CHECK(index.info.has_value());
  return RangeFormatOf(format).read(store, index, deadline);
}

}  // namespace optcache::storage::internal
