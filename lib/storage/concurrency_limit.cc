#include "storage/concurrency_limit.h"

#include <algorithm>

namespace optcache::storage {

ConcurrencyLimit::ConcurrencyLimit(ConcurrencyOptions options)
    : options_(options), limit_(std::max(options.max, 1U)) {}

// The ticket is the number of decreases so far.
ConcurrencyLimit::Ticket ConcurrencyLimit::OnStart() {
  ++running_;
  return decreases_;
}

void ConcurrencyLimit::OnEnd(Ticket ticket, End end) {
  // A limit that is not even half used was not tried: it does not grow.
  const bool tried = running_ * 2 >= limit();
  --running_;
  if (end == End::kAnswered && tried) {
    limit_ = std::min(limit_ + 1 / limit_, static_cast<double>(std::max(options_.max, 1U)));
  }
  if (end == End::kOverloaded && ticket == decreases_) {
    limit_ = std::max(limit_ * options_.decrease_factor, 1.0);
    ++decreases_;
  }
}

}  // namespace optcache::storage
