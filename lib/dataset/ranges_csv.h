#pragma once

// A list of ranges as text, one sample a line: OBJECT,OFFSET,LENGTH or OBJECT,OFFSET,LENGTH,NAME
// (docs/formats/ranges.md). Pure.

#include <string_view>

#include "base/result.h"
#include "dataset/ranges.h"

namespace optcache::dataset {

// The ranges in the order of the lines, of at most kRangeIndexBytesMax. kInvalidArgument names the
// line and says what to write instead: another number of fields, what is no number, a path that no
// manifest can hold, a name where other lines have none, or a list without a range.
Result<RangeIndex> ParseRangesCsv(std::string_view text);

}  // namespace optcache::dataset
