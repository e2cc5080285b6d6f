#pragma once

// DistributedSampler: one permutation a pass, dealt to the ranks like cards. Hugging Face
// Accelerate deals batches instead of single samples, Megatron slices of them; all else is the
// same.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

// The order of all ranks in the pass for which the training process called set_epoch(epoch). A rank
// reads every world-th place of it, from its own number on: that is how PyTorch deals, so the list
// is already in global positions.
//
// If a round of the ranks, world * block samples, does not divide the dataset, drop_last cuts the
// list, and without drop_last it goes on from its own start, as often as needed. `recipe` is valid
// and of kind torch-distributed. Once `stop` says so, the order means nothing.
std::vector<SampleId> DistributedOrder(const Recipe& recipe, std::uint64_t epoch,
                                       const StopCheck& stop = {});

}  // namespace optcache::sampler
