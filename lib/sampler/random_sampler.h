#pragma once

// RandomSampler(generator=g) read through a DataLoader: all passes come from one running generator.
// Without replacement by permutations, as many as num_samples needs; with replacement by numbers.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/stop_check.h"
#include "sampler/mt19937.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

// The stream of random words of g, which was seeded once, and what is drawn from it:
//
//   pass 0                               pass 1
//   | base seed | permutations | tail   | base seed | permutations | tail ...
//
// where base seed (2 words) and tail (one more permutation, unused where num_samples is a multiple
// of the dataset's size) are there or not as the recipe says. So a pass's order depends on the
// number of passes before it, each read to its end: one that breaks off leaves its tail undrawn and
// shifts all later ones, which the CRC of the next pass's order shows. Not thread-safe: a value.
class RandomSampler {
 public:
  // Words that one call may skip, some two minutes' worth: a limit on what an announced pass
  // number can cost.
  static constexpr std::uint64_t kMaxSkippedWords = 1ULL << 36U;

  // `recipe` is valid and of kind torch-random.
  explicit RandomSampler(const Recipe& recipe);

  // The order of the pass that comes after `pass` others. Going forward skips the words between;
  // going back starts again from the seed. kInvalidArgument if that is above kMaxSkippedWords. Once
  // `stop` says so the order means nothing, and no other may be asked for.
  Result<std::vector<SampleId>> PassOrder(std::uint64_t pass, const StopCheck& stop = {});

 private:
  std::vector<SampleId> Draw(const StopCheck& stop);     // with replacement
  std::vector<SampleId> Permute(const StopCheck& stop);  // without

  Recipe recipe_;
  Mt19937 generator_;
  std::uint64_t drawn_ = 0;  // words drawn from generator_ so far
};

}  // namespace optcache::sampler
