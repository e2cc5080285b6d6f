#include "dataset/ranges.h"

#include <fmt/format.h>

namespace optcache::dataset {

std::uint64_t RangeIndex::samples() const {
  std::uint64_t samples = 0;
  for (const RangeRun& run : runs)
    samples += run.count;
  return samples;
}

Status CheckRun(const RangeIndex& index, const RangeRun& run, ByteCount object_bytes) {
  ByteCount end = 0;
  const bool beyond_64_bits = __builtin_mul_overflow(run.length, run.count, &end) ||
                              __builtin_add_overflow(run.offset, end, &end);
  if (!beyond_64_bits && end <= object_bytes) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("{} {}: {} bytes from byte {} on end beyond {}, which has {} bytes: was it "
                      "cut, or is the index of another file?",
                      index.unit, run.line, run.length, run.offset, index.objects[run.object],
                      object_bytes)};
}

}  // namespace optcache::dataset
