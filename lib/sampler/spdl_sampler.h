#pragma once

// SPDL's DistributedRandomSampler: numpy's Generator.choice without replacement.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

// numpy.random.default_rng(seed).choice(size, count, replace=False); count <= size < kNoSample.
std::vector<SampleId> NumpyChoice(std::uint64_t size, std::uint64_t count, std::uint64_t seed);

// The order of all ranks in the pass before which shuffle(seed=epoch) was called; recipe.seed is
// added to it. Every world-th place is a rank's, cut to equal shares. `recipe` is valid and of kind
// spdl-random.
std::vector<SampleId> SpdlOrder(const Recipe& recipe, std::uint64_t epoch);

}  // namespace optcache::sampler
