#include "storage/hedge_policy.h"

#include <algorithm>

namespace optcache::storage {

HedgePolicy::HedgePolicy(HedgeOptions options)
    : options_(options), bucket_({.capacity = options.saved_max, .per_second = 0, .initial = 0}) {}

std::optional<Duration> HedgePolicy::OnRead(ByteCount bytes) {
  bucket_.Add(options_.extra_share);
  if (options_.extra_share <= 0 || bytes > options_.bytes_max) return std::nullopt;
  const auto tail = latencies_.Quantile(bytes, options_.late_quantile, options_.measured_min);
  const auto median = latencies_.Quantile(bytes, 0.5, options_.measured_min);
  if (!tail || !median) return std::nullopt;
  const auto medians = std::chrono::duration_cast<Duration>(*median * options_.late_medians);
  return std::max({*tail, medians, options_.late_min});
}

bool HedgePolicy::TryStart(ByteCount bytes) {
  if (running_ >= options_.running_max || bytes > options_.bytes_max - running_bytes_) return false;
  if (!bucket_.TryTake(1, MonotonicTime{})) return false;  // time alone brings none
  ++running_;
  running_bytes_ += bytes;
  return true;
}

void HedgePolicy::OnHedgeEnd(ByteCount bytes) {
  --running_;
  running_bytes_ -= bytes;
}

void HedgePolicy::OnLatency(ByteCount bytes, Duration latency) {
  latencies_.Observe(bytes, latency);
}

}  // namespace optcache::storage
