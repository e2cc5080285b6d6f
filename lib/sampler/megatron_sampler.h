#pragma once

// Megatron's cyclic sampler, MegatronPretrainingRandomSampler.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

// The order of all ranks in that epoch, which Megatron counts by the samples it has consumed;
// recipe.seed is 0 but in NeMo, which adds one. `block` is the micro batch; only whole ones of all
// ranks are read.
//
// Sharded, rank r shuffles the r-th part of the dataset, all ranks by the same permutation; else
// one permutation of all is dealt as DistributedSampler deals. `recipe` is valid and of kind
// megatron-cyclic. Once `stop` says so, the order means nothing.
std::vector<SampleId> MegatronCyclicOrder(const Recipe& recipe, std::uint64_t epoch,
                                          const StopCheck& stop = {});

}  // namespace optcache::sampler
