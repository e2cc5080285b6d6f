#pragma once

// What limits training now, by two looks at the pages of metrics of its sidecars. Pure.

#include <cstdint>
#include <vector>

#include "cli/finding.h"
#include "cli/metrics_text.h"

namespace optcache::cli {

// One page, looked at twice.
struct PageLooks {
  std::vector<MetricSample> before;
  std::vector<MetricSample> after;
  double seconds = 0;  // between the looks
};

enum class Limit : std::uint8_t {
  kNoReader,     // no rank is attached
  kNothingRead,  // no sample was read, and no rank waits
  kCompute,      // ranks hardly wait for samples
  kStoreSilent,
  kStoreHoldsBack,  // the store is overloaded, so it is asked for less
  kArena,
  kStore,
  kNetwork,  // between nodes
  kNode,     // of the machine, or its sidecar
};

struct TrainingLimit {
  Limit limit = Limit::kNoReader;
  double waiting = 0;  // time waited, divided by the time of all ranks; above 1 with many workers
  double seconds = 0;  // of the longest pair of looks
  double store_bytes_per_second = 0;
  double samples_per_second = 0;
};

// Counters that went down began again at 0.
TrainingLimit LimitOf(const std::vector<PageLooks>& pages);

Finding FindingOnLimit(const TrainingLimit& limit);

}  // namespace optcache::cli
