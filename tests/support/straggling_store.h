#pragma once

// A store in virtual time of which some requests take very long, and readers that hedge.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <queue>
#include <vector>

#include "base/random.h"
#include "storage/hedge_policy.h"

namespace optcache::storage {

struct StragglingStore {
  std::uint64_t seed = 1;
  std::size_t reads = 20000;
  std::size_t at_a_time = 32;
  double median_ms = 20;
  double spread = 0.3;               // of the latency's logarithm
  std::size_t straggle_every = 100;  // one request of so many, at a random place among them
  double straggler_ms = 2000;        // on top
  // From this read on, everything is that many times slower: a brown-out.
  std::size_t brown_out_at = 0;
  double brown_out_factor = 1;
  std::vector<ByteCount> sizes = {100'000};
  HedgeOptions hedges;
};

struct StragglingReads {
  std::vector<double> latencies_ms;  // sorted
  std::size_t requests = 0;
  std::size_t running_max = 0;
  ByteCount bytes_max = 0;

  // The smallest latency that no more than a share of 1 - `share` of the reads reach or exceed.
  double Quantile(double share) const {
    const auto at = static_cast<std::size_t>(share * static_cast<double>(latencies_ms.size()));
    return latencies_ms[std::min(at, latencies_ms.size() - 1)];
  }
  double extra(std::size_t reads) const {
    return static_cast<double>(requests - reads) / static_cast<double>(reads);
  }
};

// All reads, `at_a_time` under way, event by event as hedging_store.h would do it.
inline StragglingReads ReadAll(const StragglingStore& store) {
  struct Read {
    ByteCount bytes = 0;
    double began = 0;
    double first_ends = 0;
    bool over = false;
    bool hedged = false;
  };
  enum class What { kFirst, kLate, kSecond };
  struct Event {
    double at;
    std::size_t read;
    What what;
    double took;
    bool operator>(const Event& other) const { return at > other.at; }
  };
  Random random(store.seed);
  HedgePolicy policy(store.hedges);
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::vector<Read> reads(store.reads);
  std::deque<std::size_t> late;
  StragglingReads result;
  const auto duration = [](double ms) { return Duration(static_cast<Duration::rep>(ms * 1e6)); };
  std::size_t begun = 0;
  std::size_t straggler = 0;
  const auto latency = [&] {
    // Box and Muller's normal numbers.
    const double normal = std::sqrt(-2 * std::log(1 - random.Unit())) *
                          std::cos(2 * 3.14159265358979323846 * random.Unit());
    double ms = store.median_ms * std::exp(store.spread * normal);
    if (store.brown_out_at != 0 && begun > store.brown_out_at) ms *= store.brown_out_factor;
    const std::size_t place = result.requests++ % store.straggle_every;
    if (place == 0) straggler = random.Below(store.straggle_every);
    if (place == straggler) ms += store.straggler_ms;
    return ms;
  };
  const auto begin = [&](double now) {
    if (begun == store.reads) return;
    const std::size_t number = begun++;
    Read& read = reads[number];
    read.bytes = store.sizes[random.Below(store.sizes.size())];
    read.began = now;
    const double took = latency();
    read.first_ends = now + took;
    events.push({now + took, number, What::kFirst, took});
    if (const auto after = policy.OnRead(read.bytes)) {
      events.push({now + static_cast<double>(after->count()) / 1e6, number, What::kLate, 0});
    }
  };
  const auto end = [&](Read& read, double now) {
    read.over = true;
    result.latencies_ms.push_back(now - read.began);
    begin(now);
  };
  for (std::size_t i = 0; i < store.at_a_time; ++i)
    begin(0);
  while (!events.empty()) {
    const Event event = events.top();
    events.pop();
    Read& read = reads[event.read];
    if (event.what == What::kLate) {
      if (!read.over) late.push_back(event.read);
    } else if (event.what == What::kFirst) {
      if (!read.over) {
        policy.OnLatency(read.bytes, duration(event.took));
        end(read, event.at);
      }
    } else {
      policy.OnHedgeEnd(read.bytes);
      policy.OnLatency(read.bytes, duration(event.took));
      if (!read.over) {
        policy.OnLatency(read.bytes, duration(event.at - read.began));
        end(read, event.at);
      }
    }
    std::erase_if(late, [&](std::size_t number) { return reads[number].over; });
    while (!late.empty() && policy.TryStart(reads[late.front()].bytes)) {
      const double took = latency();
      events.push({event.at + took, late.front(), What::kSecond, took});
      late.pop_front();
      result.running_max = std::max(result.running_max, policy.running());
      result.bytes_max = std::max(result.bytes_max, policy.running_bytes());
    }
  }
  std::ranges::sort(result.latencies_ms);
  return result;
}

}  // namespace optcache::storage
