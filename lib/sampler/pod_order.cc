#include "sampler/pod_order.h"

#include <algorithm>
#include <utility>

#include "base/whole_number.h"
#include "sampler/recipe_text.h"

namespace optcache::sampler {
namespace {

constexpr std::string_view kRanks = "ranks=";
constexpr std::string_view kEpoch = "epoch=";
constexpr std::string_view kSize = "size=";

Status Wrong(std::string_view text, const std::string& why) {
  return {Code::kInvalidArgument, "sampler '" + std::string(text) + "': " + why +
                                      "; write a kind and its fields by comma, for example "
                                      "torch-distributed,seed=0,world=8,ranks=4"};
}

}  // namespace

Result<PodOrder> ParsePodOrder(std::string_view text) {
  PodOrder order;
  std::string recipe;
  bool has_size = false;
  bool has_ranks = false;
  bool has_epoch = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    if (word.starts_with(kRanks)) {
      if (std::exchange(has_ranks, true)) return Error(Wrong(text, "ranks is there twice"));
      word.remove_prefix(kRanks.size());
      order.ranks = ParseWholeNumber<std::uint32_t>(word, kMaxRanksOfPod).value_or(0);
      if (order.ranks == 0) return Error(Wrong(text, "ranks is a number from 1 to 64"));
      continue;
    }
    if (word.starts_with(kEpoch)) {
      if (std::exchange(has_epoch, true)) return Error(Wrong(text, "epoch is there twice"));
      const auto epoch =
          ParseWholeNumber<std::uint32_t>(word.substr(kEpoch.size()), kMaxEpochOfPod);
      if (!epoch) return Error(Wrong(text, "epoch is a number from 0 to 1000000"));
      order.epoch = *epoch;
      continue;
    }
    has_size = has_size || word.starts_with(kSize);
    recipe.append(recipe.empty() ? "" : " ").append(word);
  }
  if (!has_size) recipe += " " + std::string(kSize) + std::to_string(kMaxSize);
  auto parsed = ParseRecipe(recipe);
  if (!parsed) return Error(Wrong(text, parsed.error().message()));
  order.recipe = *std::move(parsed);
  if (!order.recipe.subset.empty()) return Error(Wrong(text, "a subset cannot be said here"));
  if (!has_size) order.recipe.size = 0;
  if (order.recipe.world % order.ranks != 0)
    return Error(Wrong(text, "world is a multiple of ranks: all pods have as many"));
  return order;
}

Result<PodRanks> RanksOf(const PodOrder& order, std::uint32_t pod, std::uint64_t samples) {
  PodRanks ranks{.recipe = order.recipe, .ranks = {}, .epoch = order.epoch};
  if (ranks.recipe.size == 0) ranks.recipe.size = samples;
  if (ranks.recipe.size != samples) {
    return Error(Code::kInvalidArgument,
                 "the sampler is over " + std::to_string(ranks.recipe.size) +
                     " samples, the dataset has " + std::to_string(samples) + ": leave size out");
  }
  RETURN_IF_ERROR(Validate(ranks.recipe));
  const std::uint64_t first = std::uint64_t{pod} * order.ranks;
  if (first + order.ranks > ranks.recipe.world) {
    return Error(Code::kInvalidArgument,
                 "pod " + std::to_string(pod) + " has ranks from " + std::to_string(first) +
                     " on, the sampler's world has " + std::to_string(ranks.recipe.world));
  }
  for (std::uint32_t i = 0; i < order.ranks; ++i)
    ranks.ranks.push_back(static_cast<Rank>(first + i));
  return ranks;
}

}  // namespace optcache::sampler
