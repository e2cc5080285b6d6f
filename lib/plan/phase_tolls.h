#pragma once

// What makes MIN even. MIN has the most hits that there can be, but bunched: of two jobs in step at
// capacity .3 its hit ratio runs from .35 to .74 over a pass, and for a while the store must
// deliver half as much again as on average.
//
// A kept sample takes its room for as long as its next use is away, and MIN gives up the one that
// is farthest away. Here the window is cut into phases, and what is used in a phase counts as if it
// were toll times as far: a low toll draws hits there. For a tenth of a per cent of the hits, those
// two jobs have .53 to .56.
//
// The tolls are found by trying. MIN over a miniature, some thousands of samples and their share of
// the capacity, shows which phases have too few hits; those get cheaper, again and again. A
// miniature of samples that a hash of their ids chooses behaves as the whole does: Waldspurger et
// al., Efficient MRC Construction with SHARDS, FAST 2015. Integers only.
//
//   | window | lookahead | window again, ids exchanged | lookahead again |
//   |  warms |         what is measured                | what these keep for

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace optcache::plan {

inline constexpr std::size_t kPhases = 20;  // of a window
inline constexpr std::uint32_t kOneToll = 1U << 12U;
using PhaseTolls = std::array<std::uint32_t, kPhases>;  // in kOneToll

// The first of a phase among the merged reads. What lies behind the window is cut alike and pays
// the tolls of the window's phases in turn.
constexpr std::size_t PhaseBegin(std::size_t phase, std::size_t window) {
  return phase / kPhases * window + phase % kPhases * window / kPhases;
}

struct MiniatureRead {
  std::size_t time;  // of the merged reads
  SampleId sample;
  std::uint32_t bytes;
};

// Some samples' reads, and the tolls that make them even. Not thread-safe: a value.
class Miniature {
 public:
  // Of a dataset that has fewer samples there is none, and MIN stays as it is.
  static constexpr std::uint32_t kLeastSamples = 4096;

  Miniature(std::uint32_t samples, std::size_t streams);

  bool exists() const { return one_in_ > 0; }
  bool Has(SampleId sample) const {
    constexpr std::uint32_t kGolden = 0x9e3779b1;  // Fibonacci hashing
    return (std::uint64_t{sample * kGolden} * one_in_) >> 32U == 0;
  }

  // `sample`, which it Has, is the merged reads' `time`-th. To be called in time.
  void AddRead(std::size_t time, SampleId sample, std::uint32_t bytes) {
    reads_.push_back({.time = time, .sample = sample, .bytes = bytes});
  }

  // Of a window of so many reads, and one as long behind it. `capacity`: of all nodes together.
  PhaseTolls EvenTolls(std::size_t window, ByteCount capacity) const;

 private:
  std::uint32_t one_in_ = 0;
  std::vector<MiniatureRead> reads_;
};

}  // namespace optcache::plan
