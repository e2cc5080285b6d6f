#pragma once

// What limits training now, by two looks at the pages of metrics of its sidecars. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/explain/finding.h"
#include "cli/local/metrics_text.h"

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
  kCompute,      // the processes that read hardly wait for samples
  kWorkers,      // nor do the workers of loaders, which always have samples to work on
  kStoreSilent,
  kStoreHoldsBack,  // the store is overloaded, so it is asked for less
  kArena,
  kStore,
  kNetwork,  // between nodes
  kNode,     // of the machine, or its sidecar
};

// What a process waits for, as `cause` of optcache_client_wait_cause_seconds_total.
enum class Cause : std::uint8_t { kArena, kStore, kNetwork, kNode };
inline constexpr std::size_t kCauses = 4;

struct TrainingLimit {
  Limit limit = Limit::kNoReader;
  // Shares, 0 to 1: of the time of the processes that read, those that do not tell their time left
  // out, or else of that of all ranks; and of the workers' time. `causes` are of the time waited.
  double waiting = 0;
  double working = 0;
  std::array<double, kCauses> causes{};
  double seconds = 0;  // of the longest pair of looks
  double store_bytes_per_second = 0;
  double samples_per_second = 0;
};

// Counters that went down began again at 0.
TrainingLimit LimitOf(const std::vector<PageLooks>& pages);

// The share of the time, 0 to 1, in which training waits for samples, by one page: as `waiting`,
// and 0 while the workers of loaders are ahead of training.
double TrainingWait(const PageLooks& looks);

Finding FindingOnLimit(const TrainingLimit& limit);

}  // namespace optcache::cli
