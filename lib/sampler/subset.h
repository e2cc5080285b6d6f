#pragma once

// Subset and ConcatDataset: indices of what the sampler sees to samples of the dataset.

#include <span>

#include "base/ids.h"
#include "base/stop_check.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

// Replaces each index of the concatenated ranges by the sample that it stands for. All indices lie
// within them. Once `stop` says so, some are left as they are.
void MapToSubset(std::span<const IdRange> ranges, std::span<SampleId> order,
                 const StopCheck& stop = {});

}  // namespace optcache::sampler
