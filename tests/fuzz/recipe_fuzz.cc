// Recipes from outside: what is read is valid and written back as an equal text.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sampler/recipe_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace optcache::sampler;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto recipe = ParseRecipe(text);
  if (!recipe) return 0;
  CHECK(Validate(*recipe).ok());
  const std::string again = FormatRecipe(*recipe);
  CHECK(again.size() <= kMaxRecipeBytes);
  CHECK(ParseRecipe(again).value() == *recipe);
  CHECK(PassLength(*recipe) == RankLength(*recipe) * recipe->world);
  return 0;
}
