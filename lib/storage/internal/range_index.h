#pragma once

// Reads what says which ranges of which objects are samples.

#include <string_view>

#include "dataset/format.h"
#include "dataset/ranges.h"
#include "storage/index.h"

namespace optcache::storage::internal {

// Formats are those of index_ranges.h: CHECKed.

// Which objects of a source are indexes of a format, where `include` does not say: a pattern.
std::string_view UsualIndexes(dataset::Format format);

// True if little more than the head of an index is read, so that many may be read at a time.
bool AreIndexesShort(dataset::Format format);

// The store's errors, kInvalidArgument if the index has too many bytes, or that of its parser. None
// of them names the index. CHECKs its info.
Result<dataset::RangeIndex> ReadRangeIndex(ObjectStore& store, const ListedObject& index,
                                           dataset::Format format, Deadline deadline);

}  // namespace optcache::storage::internal
