#include "sampler/random_sampler.h"

#include <limits>
#include <string>

#include "sampler/randperm.h"

namespace optcache::sampler {
namespace {

constexpr std::uint64_t kBaseSeedWords = 2;  // one int64

// What is drawn from the generator.
struct Words {
  std::uint64_t used = 0;    // of a pass: for its order
  std::uint64_t a_pass = 0;  // and with what is drawn around it
  std::uint64_t before = 0;  // of a pass: before its order
};

bool WideRandint(const Recipe& recipe) {
  return recipe.modern_randperm && recipe.size >= kWideRandintFrom;
}

std::uint64_t Draws(const Recipe& recipe) {
  return recipe.draws == 0 ? recipe.size : recipe.draws;
}

Words WordsOf(const Recipe& recipe) {
  Words words;
  if (recipe.replacement) {
    words.used = Draws(recipe) * (WideRandint(recipe) ? 2 : 1);
    words.a_pass = words.used;
  } else {
    const std::uint64_t permutation =
        RandpermWords(recipe.size, RandpermOf(recipe.size, recipe.modern_randperm));
    const std::uint64_t whole = Draws(recipe) / recipe.size;
    const std::uint64_t cut = Draws(recipe) % recipe.size == 0 ? 0 : 1;
    words.used = (whole + cut) * permutation;
    words.a_pass = (whole + (recipe.tail_permutation ? 1 : cut)) * permutation;
  }
  if (recipe.base_seed != BaseSeed::kNever) words.before = kBaseSeedWords;
  if (recipe.base_seed == BaseSeed::kEveryPass) words.a_pass += kBaseSeedWords;
  return words;
}

// Where the words of pass `pass`'s order begin, or nothing if that does not fit in 64 bits.
Result<std::uint64_t> FirstWord(const Words& words, std::uint64_t pass) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() - kBaseSeedWords;
  if (words.a_pass != 0 && pass > kMost / words.a_pass) {
    return Error(Code::kInvalidArgument,
                 "pass " + std::to_string(pass) + " is beyond any training run: check the number");
  }
  return words.before + pass * words.a_pass;
}

}  // namespace

RandomSampler::RandomSampler(const Recipe& recipe)
    : recipe_(recipe), generator_(static_cast<std::uint64_t>(recipe.seed)) {}

Result<std::vector<SampleId>> RandomSampler::PassOrder(std::uint64_t pass, const StopCheck& stop) {
  const Words words = WordsOf(recipe_);
  ASSIGN_OR_RETURN(const std::uint64_t first, FirstWord(words, pass));
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
  generator_.Discard(skipped, stop);
  if (stop.Now()) return std::vector<SampleId>();
  drawn_ = first + words.used;
  return recipe_.replacement ? Draw(stop) : Permute(stop);
}

std::vector<SampleId> RandomSampler::Draw(const StopCheck& stop) {
  const auto size = static_cast<std::uint32_t>(recipe_.size);
  const std::uint64_t draws = Draws(recipe_);
  const bool wide = WideRandint(recipe_);
  std::vector<SampleId> order;
  order.reserve(draws);
  for (std::uint64_t i = 0; i < draws && !stop.At(i); ++i) {
    order.push_back(wide ? static_cast<SampleId>(generator_.Next64() % size)
                         : generator_.Next() % size);
  }
  return order;
}

std::vector<SampleId> RandomSampler::Permute(const StopCheck& stop) {
  const Randperm variant = RandpermOf(recipe_.size, recipe_.modern_randperm);
  const std::uint64_t draws = Draws(recipe_);
  std::vector<SampleId> order;
  order.reserve(draws);
  while (draws - order.size() >= recipe_.size && !stop.Now())
    AppendRandperm(recipe_.size, variant, generator_, order, stop);
  if (order.size() == draws || stop.Now()) return order;
  const std::vector<SampleId> last = MakeRandperm(recipe_.size, variant, generator_, stop);
  for (std::size_t i = 0; order.size() < draws && !stop.At(i); ++i)
    order.push_back(last[i]);
  return order;
}

}  // namespace optcache::sampler
