#pragma once

// What a stream's recipe means to the sampler library.

#include "base/ids.h"
#include "base/result.h"
#include "coordination/state.h"
#include "sampler/recipe.h"

namespace optcache::coordination {

// kInvalidArgument: this version does not know it, or its fields do not fit together.
Result<sampler::Recipe> SamplerRecipe(const Recipe& recipe);

// Positions in a pass of all ranks together.
Position PassLength(const Recipe& recipe);

// Takes over what `order`, a recipe as text, says: it is known then. False, and nothing changes, if
// it cannot be read or is for another world.
bool TakeOrder(std::string_view order, Recipe& recipe);

}  // namespace optcache::coordination
