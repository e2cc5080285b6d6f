#include "sampler/subset.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace optcache::sampler {

void MapToSubset(std::span<const IdRange> ranges, std::span<SampleId> order,
                 const StopCheck& stop) {
  std::vector<std::uint64_t> ends;    // of each range, in indices
  std::vector<std::uint64_t> shifts;  // from index to sample, modulo 2^64
  std::uint64_t end = 0;
  for (const IdRange& range : ranges) {
    shifts.push_back(range.first - end);
    end += range.count;
    ends.push_back(end);
  }
  for (std::size_t i = 0; i < order.size() && !stop.At(i); ++i) {
    SampleId& id = order[i];
    const auto range = std::ranges::upper_bound(ends, std::uint64_t{id}) - ends.begin();
    id = static_cast<SampleId>(id + shifts[static_cast<std::size_t>(range)]);
  }
}

}  // namespace optcache::sampler
