#include "sampler/random_sampler.h"

#include <limits>
#include <string>

#include "sampler/randperm.h"

namespace optcache::sampler {
namespace {

constexpr std::uint64_t kBaseSeedWords = 2;  // one int64

// Where the words of pass `pass`'s permutation begin, or nothing if that does not fit in 64 bits.
Result<std::uint64_t> FirstWord(const Recipe& recipe, std::uint64_t pass,
                                std::uint64_t permutation) {
  std::uint64_t per_pass = recipe.tail_permutation ? 2 * permutation : permutation;
  std::uint64_t before = recipe.base_seed == BaseSeed::kNever ? 0 : kBaseSeedWords;
  if (recipe.base_seed == BaseSeed::kEveryPass) per_pass += kBaseSeedWords;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() - kBaseSeedWords;
  if (per_pass != 0 && pass > kMost / per_pass) {
    return Error(Code::kInvalidArgument,
                 "pass " + std::to_string(pass) + " is beyond any training run: check the number");
  }
  return before + pass * per_pass;
}

}  // namespace

RandomSampler::RandomSampler(const Recipe& recipe)
    : recipe_(recipe), generator_(static_cast<std::uint64_t>(recipe.seed)) {}

Result<std::vector<SampleId>> RandomSampler::PassOrder(std::uint64_t pass) {
  const Randperm variant = RandpermOf(recipe_.size, recipe_.modern_randperm);
  const std::uint64_t permutation = RandpermWords(recipe_.size, variant);
  ASSIGN_OR_RETURN(const std::uint64_t first, FirstWord(recipe_, pass, permutation));
  const bool back = first < drawn_;
  const std::uint64_t skipped = back ? first : first - drawn_;
  if (skipped > kMaxSkippedWords) {
    return Error(Code::kInvalidArgument,
                 "pass " + std::to_string(pass) + " of a torch-random sampler with " +
                     std::to_string(recipe_.size) + " samples lies " + std::to_string(skipped) +
                     " random words ahead, above the limit of " + std::to_string(kMaxSkippedWords) +
                     ": ask for the passes in order, or announce this one as a trace of ids");
  }
  if (back) generator_ = Mt19937(static_cast<std::uint64_t>(recipe_.seed));
  generator_.Discard(skipped);
  drawn_ = first + permutation;
  return MakeRandperm(recipe_.size, variant, generator_);
}

}  // namespace optcache::sampler
