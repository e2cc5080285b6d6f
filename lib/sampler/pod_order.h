#pragma once

// The order of the ranks of one pod, as a person writes it for a training script that is not
// changed: "torch-distributed,seed=0,world=8,ranks=4". It is a recipe (docs/formats/recipe.md) with
// commas for blanks, how many of its ranks the pod has, and with which epoch they begin.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

inline constexpr std::uint32_t kMaxRanksOfPod = 64;
inline constexpr std::uint32_t kMaxEpochOfPod = 1'000'000;

struct PodOrder {
  Recipe recipe;  // its size is 0 where the text says none: that of the dataset
  std::uint32_t ranks = 1;
  std::uint32_t epoch = 0;  // of the first pass
};

// kInvalidArgument says what is wrong, or what there is; so does a world that is no multiple of
// `ranks`. A subset cannot be said.
Result<PodOrder> ParsePodOrder(std::string_view text);

// Of a dataset of `samples`, in the pod of that number among the job's, counted from 0.
// kInvalidArgument: the world has no such ranks, or the recipe does not fit the samples.
struct PodRanks {
  Recipe recipe;
  std::vector<Rank> ranks;
  std::uint32_t epoch = 0;  // of the first pass
};
Result<PodRanks> RanksOf(const PodOrder& order, std::uint32_t pod, std::uint64_t samples);

}  // namespace optcache::sampler
