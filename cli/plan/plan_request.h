#pragma once

// From the flags of `optcache plan` to the order and the cache that are planned, and back from an
// order to the recipe that makes it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "opt4torch/plan_file.h"
#include "sampler/recipe.h"
#include "simulation/policies/policy.h"

namespace optcache::cli {

// As they are written; `--help` of the subcommand says what they mean. 0 and empty: not given.
struct PlanOrderFlags {
  std::uint64_t dataset_size = 0;
  std::uint64_t total_iter = 0;  // OPT4TorchDataset's way, with `replacement`
  bool replacement = true;
  std::int64_t seed = 0;

  std::uint32_t epochs = 0;  // ours: this many passes
  std::string sampler;
  std::uint32_t world = 1;
  std::optional<Rank> rank;
  std::string recipe;  // instead of dataset_size, seed, sampler and world
};

struct PlanRoomFlags {
  std::uint64_t maxsize = 0;
  std::string capacity;
  std::string manifest;
};

struct PlannedOrder {
  std::vector<SampleId> reads;
  std::uint32_t dataset_size = 0;
  std::int64_t seed = 0;
};

// kInvalidArgument names the flag, and what to say instead.
Result<PlannedOrder> MakePlannedOrder(const PlanOrderFlags& flags);

// The cache for `dataset_size` samples: slots of one each, or bytes. nullopt: no flag was given.
// kInvalidArgument names the flag.
Result<std::optional<plan::Room>> MakePlannedRoom(const PlanRoomFlags& flags,
                                                  std::uint32_t dataset_size);

// The sampler that reads as the plan says, with its seed: PyTorch's RandomSampler once, or its
// DistributedSampler of one rank, pass after pass. nullopt: neither.
std::optional<sampler::Recipe> RecipeOfPlan(const plan::PlanFile& plan);

}  // namespace optcache::cli
