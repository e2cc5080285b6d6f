#pragma once

// Recipes as one line of text, as they travel between parts:
//
//   torch-distributed size=1281167 seed=5 world=8 block=32
//
// The kind, then what differs from the defaults, in the order of Recipe's fields. So equal recipes
// are equal texts. Specified in docs/formats/recipe.md.

#include <string>
#include <string_view>

#include "base/result.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

inline constexpr std::size_t kMaxRecipeBytes = 4096;

// At most kMaxRecipeBytes for a valid recipe.
std::string FormatRecipe(const Recipe& recipe);

// A valid recipe. kInvalidArgument names the word that is wrong, what is unknown here, or what
// Validate says.
Result<Recipe> ParseRecipe(std::string_view text);

// The first field in which two recipes differ, with both values: "seed: 3 and 4". Empty: none. Of
// subsets, which can be long, as much as a message has room for (512 bytes).
std::string FirstDifference(const Recipe& one, const Recipe& other);

}  // namespace optcache::sampler
