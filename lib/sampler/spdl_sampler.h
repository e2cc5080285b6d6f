#pragma once

// SPDL's DistributedRandomSampler: numpy's Generator.choice without replacement.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

// numpy.random.default_rng(seed).choice(size, count, replace=False); count <= size < kNoSample.
// Once `stop` says so, what is chosen means nothing; nor does the order below.
std::vector<SampleId> NumpyChoice(std::uint64_t size, std::uint64_t count, std::uint64_t seed,
                                  const StopCheck& stop = {});

// The order of all ranks in the pass before which shuffle(seed=epoch) was called; recipe.seed is
// added to it. Every world-th place is a rank's, cut to equal shares. `recipe` is valid and of kind
// spdl-random.
std::vector<SampleId> SpdlOrder(const Recipe& recipe, std::uint64_t epoch,
                                const StopCheck& stop = {});

}  // namespace optcache::sampler
