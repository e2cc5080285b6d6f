#pragma once

// SequentialSampler: the dataset from front to back, every pass.

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/ids.h"

namespace optcache::sampler {

// 0 to size - 1; size <= kNoSample.
inline std::vector<SampleId> SequentialOrder(std::uint64_t size) {
  std::vector<SampleId> order(size);
  std::iota(order.begin(), order.end(), SampleId{0});
  return order;
}

}  // namespace optcache::sampler
