#pragma once

// SequentialSampler: the dataset from front to back, every pass.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"

namespace optcache::sampler {

// Appends 0 to size - 1; size <= kNoSample. Fewer once `stop` says so.
inline void AppendSequence(std::uint64_t size, std::vector<SampleId>& order,
                           const StopCheck& stop) {
  order.reserve(order.size() + size);
  for (std::uint64_t id = 0; id < size && !stop.Now(); id += StopCheck::kSteps) {
    const std::size_t begin = order.size();
    order.resize(begin + std::min<std::uint64_t>(size - id, StopCheck::kSteps));
    std::iota(order.begin() + static_cast<std::ptrdiff_t>(begin), order.end(),
              static_cast<SampleId>(id));
  }
}

inline std::vector<SampleId> SequentialOrder(std::uint64_t size, const StopCheck& stop = {}) {
  std::vector<SampleId> order;
  AppendSequence(size, order, stop);
  return order;
}

}  // namespace optcache::sampler
