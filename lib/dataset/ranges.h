#pragma once

// Samples that are ranges of objects, as an index names them: a list of ranges, or a file of a
// known format. Whether the objects are there and long enough is not known yet.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace optcache::dataset {

// Of an index that is read as a whole: some three million ranges with names.
inline constexpr ByteCount kRangeIndexBytesMax = 256_MiB;
inline constexpr std::uint64_t kRangeSamplesMax = 100'000'000;  // a manifest of some 3 GB
// Of an object, as the manifest has it; so neither do sums of an offset and a length overflow.
inline constexpr ByteCount kRangedObjectBytesMax = ByteCount{1} << 62U;

// Samples of one length that lie one right behind the other; usually one.
struct RangeRun {
  std::uint32_t object = 0;  // RangeIndex::objects
  std::uint32_t line = 0;    // where the index names it, for messages: see RangeIndex::unit
  ByteCount offset = 0;      // of the first sample in its object
  ByteCount length = 0;      // of each sample, perhaps 0
  std::uint64_t count = 1;   // of samples
  friend bool operator==(const RangeRun&, const RangeRun&) = default;
};

// What an index says, in the order of the samples.
struct RangeIndex {
  std::vector<std::string> objects;  // paths below the source's root, each once, that have samples
  std::vector<RangeRun> runs;
  std::vector<std::string> names{};  // by sample; empty where samples have none
  std::string type{};                // of what the samples hold, if the index tells: "<f4 (3, 2)"
  std::string_view unit = "line";    // what RangeRun::line counts

  std::uint64_t samples() const;
};

// kInvalidArgument says where the run ends beyond an object of this many bytes.
Status CheckRun(const RangeIndex& index, const RangeRun& run, ByteCount object_bytes);

}  // namespace optcache::dataset
