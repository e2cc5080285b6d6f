#include "storage/latency_quantiles.h"

#include <algorithm>
#include <cmath>

namespace optcache::storage {
namespace {

constexpr double kBucketsPerDoubling = 8;
constexpr double kFirstBoundNs = 1000;
constexpr std::size_t kBuckets = 224;  // up to 2^28 us, four minutes; the last takes what is beyond
constexpr double kHalveAt = 4096;

std::size_t BucketOf(Duration latency) {
  const auto ns = static_cast<double>(latency.count());
  if (ns <= kFirstBoundNs) return 0;
  const double bucket = std::ceil(std::log2(ns / kFirstBoundNs) * kBucketsPerDoubling);
  return std::min(static_cast<std::size_t>(bucket), kBuckets - 1);
}

Duration UpperBound(std::size_t bucket) {
  const double ns = kFirstBoundNs * std::exp2(static_cast<double>(bucket) / kBucketsPerDoubling);
  return Duration(static_cast<Duration::rep>(std::ceil(ns)));
}

}  // namespace

LatencyQuantiles::LatencyQuantiles() {
  for (Class& one : classes_)
    one.counts.resize(kBuckets);
}

std::size_t LatencyQuantiles::ClassOf(ByteCount bytes) {
  std::size_t size_class = 0;
  for (ByteCount bound = 16_KiB; bytes > bound && size_class + 1 < kClasses; bound *= 4)
    ++size_class;
  return size_class;
}

void LatencyQuantiles::Observe(ByteCount bytes, Duration latency) {
  Class& one = classes_[ClassOf(bytes)];
  one.counts[BucketOf(latency)] += 1;
  one.total += 1;
  if (one.total < kHalveAt) return;
  for (double& count : one.counts)
    count /= 2;
  one.total /= 2;
}

std::optional<Duration> LatencyQuantiles::Quantile(ByteCount bytes, double share,
                                                   double observed_min) const {
  const Class& one = classes_[ClassOf(bytes)];
  if (one.total < observed_min || one.total <= 0) return std::nullopt;
  double below = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    below += one.counts[bucket];
    if (below >= share * one.total) return UpperBound(bucket);
  }
  return UpperBound(kBuckets - 1);
}

}  // namespace optcache::storage
