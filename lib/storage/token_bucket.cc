#include "storage/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace optcache::storage {
namespace {

// Sums of many small shares are short of a whole by less.
constexpr double kRounding = 1e-9;

}  // namespace

TokenBucket::TokenBucket(TokenBucketOptions options)
    : options_(options), tokens_(std::min(options.initial, options.capacity)) {}

void TokenBucket::Add(double tokens) {
  tokens_ = std::min(tokens_ + tokens, options_.capacity);
}

void TokenBucket::Advance(MonotonicTime now) {
  if (at_ == MonotonicTime{}) at_ = now;
  if (now <= at_) return;
  Add(ToSeconds(now - at_) * options_.per_second);
  at_ = now;
}

bool TokenBucket::TryTake(double tokens, MonotonicTime now) {
  Advance(now);
  if (tokens_ + kRounding < tokens) return false;
  tokens_ -= tokens;
  return true;
}

void TokenBucket::Take(double tokens, MonotonicTime now) {
  Advance(now);
  tokens_ -= tokens;
}

Duration TokenBucket::Until(double tokens, MonotonicTime now) {
  Advance(now);
  const double missing = tokens - tokens_;
  if (missing <= kRounding) return Duration::zero();
  if (options_.per_second <= 0 || tokens > options_.capacity) return Duration::max();
  const double wait_ns = std::ceil(missing / options_.per_second * 1e9);
  constexpr double kLongestNs = 9e18;
  return wait_ns >= kLongestNs ? Duration::max() : Duration(static_cast<Duration::rep>(wait_ns));
}

void TokenBucket::SetRate(double capacity, double per_second, MonotonicTime now) {
  Advance(now);
  options_.capacity = capacity;
  options_.per_second = per_second;
  tokens_ = std::min(tokens_, capacity);
}

double TokenBucket::Balance(MonotonicTime now) {
  Advance(now);
  return tokens_;
}

}  // namespace optcache::storage
