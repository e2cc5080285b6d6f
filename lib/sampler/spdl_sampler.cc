#include "sampler/spdl_sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

#include "sampler/pcg64.h"
#include "sampler/sequential_sampler.h"

namespace optcache::sampler {
namespace {

// Numpy shuffles the tail of a list of all samples, unless there are few to choose from or few to
// choose: then it draws one after the other and looks up which it has.
constexpr std::uint64_t kFewSamples = 10'000;
constexpr std::uint64_t kFewPart = 50;

// for i in size-1 .. first: swap(list[i], list[0 .. i]), with the memory asked for ahead of time as
// in randperm.cc.
void ShuffleTail(std::span<SampleId> list, std::uint64_t first, Pcg64& generator,
                 const StopCheck& stop) {
  constexpr std::uint32_t kSwaps = 128;
  std::array<std::uint32_t, kSwaps> places;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  auto next = static_cast<std::uint32_t>(list.size() - 1);
  for (std::size_t i = 0; next >= first && next > 0 && !stop.At(i); i += kSwaps) {
    const auto left = static_cast<std::uint32_t>(next - std::max<std::uint64_t>(first, 1) + 1);
    const std::uint32_t batch = std::min(kSwaps, left);
    for (std::uint32_t k = 0; k < batch; ++k) {
      places[k] = generator.UpTo(next - k);
      __builtin_prefetch(&list[places[k]], 1);
    }
    for (std::uint32_t k = 0; k < batch; ++k)
      std::swap(list[next - k], list[places[k]]);
    next -= batch;
  }
}

// Floyd's algorithm (Bentley 1987): in step j either a new number up to j, or j itself.
std::vector<SampleId> ChooseFew(std::uint64_t size, std::uint64_t count, Pcg64& generator,
                                const StopCheck& stop) {
  const auto wanted = static_cast<std::uint64_t>(1.2 * static_cast<double>(count));
  const std::uint64_t mask = std::bit_ceil(wanted + 1) - 1;
  std::vector<SampleId> seen(mask + 1, kNoSample);
  // True if it was not there.
  const auto insert = [&](SampleId id) {
    std::uint64_t at = id & mask;
    while (seen[at] != kNoSample && seen[at] != id)
      at = (at + 1) & mask;
    return std::exchange(seen[at], id) == kNoSample;
  };
  std::vector<SampleId> chosen;
  chosen.reserve(count);
  for (std::uint64_t j = size - count; j < size && !stop.At(j); ++j) {
    const auto last = static_cast<SampleId>(j);
    const SampleId drawn = generator.UpTo(last);
    chosen.push_back(insert(drawn) ? drawn : last);
    if (chosen.back() == last) insert(last);
  }
  return chosen;
}

}  // namespace

std::vector<SampleId> NumpyChoice(std::uint64_t size, std::uint64_t count, std::uint64_t seed,
                                  const StopCheck& stop) {
  Pcg64 generator(seed);
  if (size > kFewSamples && count > size / kFewPart) {
    std::vector<SampleId> all = SequentialOrder(size, stop);
    if (stop.Now()) return all;  // it may be short
    ShuffleTail(all, size - count, generator, stop);
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
    return all;
  }
  std::vector<SampleId> chosen = ChooseFew(size, count, generator, stop);
  if (!chosen.empty()) ShuffleTail(chosen, 1, generator, stop);
  return chosen;
}

std::vector<SampleId> SpdlOrder(const Recipe& recipe, std::uint64_t epoch, const StopCheck& stop) {
  const std::uint64_t draws = recipe.draws == 0 ? recipe.size : recipe.draws;
  const std::uint64_t seed = static_cast<std::uint64_t>(recipe.seed) + epoch;
  std::vector<SampleId> order = NumpyChoice(recipe.size, draws, seed, stop);
  if (!stop.Now()) order.resize(PassLength(recipe));
  return order;
}

}  // namespace optcache::sampler
