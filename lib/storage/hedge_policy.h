#pragma once

// When a read is late enough that a second request for the same bytes is worth its price. A pure
// state: hedging_store.h does as it says.
//
// After Dean and Barroso, "The Tail at Scale" (2013): a second request, sent once the first has
// taken longer than nearly all do, costs a few percent more requests and takes away most of the
// tail. Here the price has a limit of its own: each read earns a share of a hedge, so that a store
// that is slow altogether does not get twice the requests.

#include <optional>

#include "base/bytes.h"
#include "base/clock.h"
#include "storage/latency_quantiles.h"
#include "storage/token_bucket.h"

namespace optcache::storage {

struct HedgeOptions {
  double extra_share = 0.02;    // hedges for each read, at most; 0: none at all
  double saved_max = 8;         // hedges saved up while none was needed
  double late_quantile = 0.98;  // late is what takes longer than this share of reads of its size,
  double late_medians = 2;      // longer than this many times the median,
  Duration late_min = std::chrono::milliseconds(10);  // and longer than this
  double measured_min = 200;                          // reads of its size, before any is hedged
  std::size_t running_max = 8;                        // hedges at a time
  ByteCount bytes_max = 4_MiB;  // of their memory together; larger reads are not hedged
};

// Not thread-safe: a value with one owner.
class HedgePolicy {
 public:
  explicit HedgePolicy(HedgeOptions options);

  // A read begins: after how long it is late; nothing if it will not be hedged.
  std::optional<Duration> OnRead(ByteCount bytes);
  // A read is late: true if it may be hedged now, for which OnHedgeEnd is due.
  bool TryStart(ByteCount bytes);
  void OnHedgeEnd(ByteCount bytes);
  // A request took this long, or longer: one that lost the race counts with the time until then,
  // else the slow would be forgotten, and what is late would come earlier and earlier.
  void OnLatency(ByteCount bytes, Duration latency);

  std::size_t running() const { return running_; }
  ByteCount running_bytes() const { return running_bytes_; }

 private:
  HedgeOptions options_;
  LatencyQuantiles latencies_;
  TokenBucket bucket_;
  std::size_t running_ = 0;
  ByteCount running_bytes_ = 0;
};

}  // namespace optcache::storage
