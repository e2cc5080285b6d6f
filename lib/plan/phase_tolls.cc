#include "plan/phase_tolls.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "base/random.h"
#include "plan/belady.h"

namespace optcache::plan {
namespace {

constexpr int kRounds = 16;
constexpr std::uint32_t kReadsInPass = 16'384;  // of the miniature, about
constexpr std::uint64_t kWhole = 1U << 16U;     // a share of 1
// Of all hits, in bytes, this share may be lost.
constexpr std::uint64_t kLossPart = 1024;
// What phases differ by this much in their shares, or less, is not worth while, and may be chance.
constexpr std::uint64_t kEvenEnough = kPhases * (kWhole / 32) * (kWhole / 32);  // as Unevenness
// How far tolls go, and how fast: a phase that has twice the mean's share of hits pays a tenth
// more.
constexpr std::uint32_t kLeastToll = kOneToll * 7 / 10;
constexpr std::uint32_t kMostToll = kOneToll * 4 / 3;
constexpr std::int64_t kStep = 10;
constexpr std::uint64_t kExchangeSeed = 0x6f70742d6576656eULL;  // "opt-even"

constexpr std::uint32_t kNoNextRead = std::numeric_limits<std::uint32_t>::max();

struct Trace {
  std::vector<std::uint32_t> bytes;        // by read
  std::vector<std::uint32_t> next;         // by read: the same sample's next, or kNoNextRead
  std::vector<std::uint32_t> phase_begin;  // by phase: its first read; four windows
};

// The reads, and after them the same with their samples exchanged at random.
Trace MakeTrace(std::span<const MiniatureRead> reads, std::size_t window) {
  std::vector<SampleId> ids;
  for (const MiniatureRead& read : reads)
    ids.push_back(read.sample);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<std::uint32_t> sample_of_read;
  std::vector<std::uint32_t> bytes_of_sample(ids.size());
  for (const MiniatureRead& read : reads) {
    const auto at = std::ranges::lower_bound(ids, read.sample) - ids.begin();
    sample_of_read.push_back(static_cast<std::uint32_t>(at));
    bytes_of_sample[static_cast<std::size_t>(at)] = read.bytes;
  }
  std::vector<std::uint32_t> exchanged(ids.size());
  std::iota(exchanged.begin(), exchanged.end(), 0);
  Random random(kExchangeSeed);
  for (std::size_t i = exchanged.size(); i > 1; --i)
    std::swap(exchanged[i - 1], exchanged[random.Below(i)]);
  for (std::size_t i = 0; i < reads.size(); ++i)
    sample_of_read.push_back(exchanged[sample_of_read[i]]);

  Trace trace;
  trace.next.resize(sample_of_read.size(), kNoNextRead);
  std::vector<std::uint32_t> upcoming(ids.size(), kNoNextRead);
  for (auto i = static_cast<std::uint32_t>(sample_of_read.size()); i-- > 0;)
    trace.next[i] = std::exchange(upcoming[sample_of_read[i]], i);
  for (std::uint32_t i = 0; i < sample_of_read.size(); ++i) {
    trace.bytes.push_back(bytes_of_sample[sample_of_read[i]]);
    const std::size_t time = reads[i % reads.size()].time + i / reads.size() * 2 * window;
    while (time >= PhaseBegin(trace.phase_begin.size(), window))
      trace.phase_begin.push_back(i);
  }
  // Phases at the end may be empty.
  trace.phase_begin.resize(4 * kPhases, static_cast<std::uint32_t>(sample_of_read.size()));
  return trace;
}

// Of the two windows in the middle.
struct Outcome {
  std::uint64_t hits = 0;  // bytes, as all of these
  std::array<std::uint64_t, kPhases> hits_of_phase{};
  std::array<std::uint64_t, kPhases> read_of_phase{};

  std::uint64_t ShareOf(std::size_t phase) const {
    return hits_of_phase[phase] * kWhole / read_of_phase[phase];
  }
};

Outcome RunMin(const Trace& trace, ByteCount capacity, const PhaseTolls& tolls) {
  const auto reads = static_cast<std::uint32_t>(trace.next.size());
  const auto bytes_of_use = [&](std::uint32_t use) -> ByteCount { return trace.bytes[use]; };
  Belady node(reads, capacity, {.begin = trace.phase_begin, .tolls = &tolls});
  Outcome outcome;
  for (std::size_t phase = 0; phase < 3 * kPhases; ++phase) {
    for (std::uint32_t read = trace.phase_begin[phase]; read < trace.phase_begin[phase + 1];
         ++read) {
      const std::uint32_t bytes = trace.bytes[read];
      const std::uint32_t hit = node.Take(read, bytes) ? bytes : 0;
      if (trace.next[read] != kNoNextRead) node.Offer(trace.next[read], bytes, bytes_of_use);
      if (phase < kPhases) continue;
      outcome.hits += hit;
      outcome.hits_of_phase[phase % kPhases] += hit;
      outcome.read_of_phase[phase % kPhases] += bytes;
    }
  }
  return outcome;
}

// Sum of the squares of what the phases' shares of hits differ from their mean.
std::uint64_t Unevenness(const Outcome& outcome, std::uint64_t& mean) {
  std::uint64_t sum = 0;
  std::uint64_t phases = 0;
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    if (outcome.read_of_phase[phase] == 0) continue;
    sum += outcome.ShareOf(phase);
    ++phases;
  }
  mean = phases == 0 ? 0 : sum / phases;
  std::uint64_t squares = 0;
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    if (outcome.read_of_phase[phase] == 0) continue;
    const std::uint64_t share = outcome.ShareOf(phase);
    const std::uint64_t away = share > mean ? share - mean : mean - share;
    squares += away * away;
  }
  return squares;
}

void Adjust(const Outcome& outcome, std::uint64_t mean, PhaseTolls& tolls) {
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    if (outcome.read_of_phase[phase] == 0) continue;
    const auto away =
        static_cast<std::int64_t>(outcome.ShareOf(phase)) - static_cast<std::int64_t>(mean);
    const auto toll = static_cast<std::int64_t>(tolls[phase]);
    tolls[phase] = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
        toll + toll * away / (kStep * static_cast<std::int64_t>(mean)), kLeastToll, kMostToll));
  }
}

}  // namespace

Miniature::Miniature(std::uint32_t samples, std::size_t streams) {
  const std::uint32_t wanted =
      std::max(kLeastSamples, kReadsInPass / static_cast<std::uint32_t>(streams));
  if (samples >= kLeastSamples) one_in_ = std::bit_floor(std::max(samples / wanted, 1U));
}

PhaseTolls Miniature::EvenTolls(std::size_t window, ByteCount capacity) const {
  const Trace trace = MakeTrace(reads_, window);
  PhaseTolls tolls;
  tolls.fill(kOneToll);
  PhaseTolls best = tolls;
  std::uint64_t least_hits = 0;
  std::uint64_t least_unevenness = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Outcome outcome = RunMin(trace, capacity / one_in_, tolls);
    std::uint64_t mean = 0;
    const std::uint64_t unevenness = Unevenness(outcome, mean);
    if (round == 0) {
      if (unevenness <= kEvenEnough) break;
      least_hits = outcome.hits - outcome.hits / kLossPart;
      least_unevenness = unevenness;
    } else if (outcome.hits >= least_hits && unevenness < least_unevenness) {
      least_unevenness = unevenness;
      best = tolls;
    }
    if (mean == 0) break;
    Adjust(outcome, mean, tolls);
  }
  return best;
}

}  // namespace optcache::plan
