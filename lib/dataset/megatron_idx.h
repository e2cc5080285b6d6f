#pragma once

// The index file NAME.idx of a dataset of Megatron-LM, beside NAME.bin with the tokens: which bytes
// of NAME.bin are which sequence. The layout is that of megatron-core's IndexedDataset
// (docs/formats/ranges.md). Pure.

#include <string>
#include <string_view>

#include "base/result.h"
#include "dataset/ranges.h"

namespace optcache::dataset {

// "p/a.bin" for "p/a.idx"; empty if the name ends otherwise.
std::string MegatronBinPath(std::string_view idx);

// The sequences, in the order of their numbers, of an index of at most kRangeIndexBytesMax. `bin`
// is the object that holds them; one without sequences names none. kInvalidArgument says why it is
// no such index, or is cut, or which sequence has no place.
Result<RangeIndex> ParseMegatronIdx(std::string_view idx, std::string bin);

}  // namespace optcache::dataset
