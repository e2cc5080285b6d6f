#pragma once

// A set of sample ids as bytes: sorted ids or a bitmap, whichever is shorter
// (docs/formats/control.md, "Sample sets").

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace optcache::coordination {

// `ids` ascending, each once. One encoding for each set.
std::string EncodeSampleSet(const std::vector<SampleId>& ids);

// Ascending. kInvalidArgument for anything that EncodeSampleSet does not write.
Result<std::vector<SampleId>> DecodeSampleSet(std::string_view bytes);

}  // namespace optcache::coordination
