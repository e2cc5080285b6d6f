#include "coordination/stream_recipe.h"

#include "sampler/recipe_text.h"

namespace optcache::coordination {
namespace {

sampler::Recipe FromFields(const Recipe& recipe) {
  return {.kind = static_cast<sampler::Kind>(recipe.sampler_kind),
          .size = recipe.size,
          .seed = recipe.seed,
          .world = recipe.world,
          .shuffle = recipe.shuffle,
          .drop_last = recipe.drop_last,
          .modern_randperm = recipe.modern_randperm,
          .base_seed = static_cast<sampler::BaseSeed>(recipe.base_seed),
          .tail_permutation = recipe.tail_permutation};
}

}  // namespace

Result<sampler::Recipe> SamplerRecipe(const Recipe& recipe) {
  if (!recipe.order.empty()) return sampler::ParseRecipe(recipe.order);
  sampler::Recipe made = FromFields(recipe);
  RETURN_IF_ERROR(sampler::Validate(made));
  return made;
}

Position PassLength(const Recipe& recipe) {
  if (!recipe.order.empty()) {
    if (const auto parsed = sampler::ParseRecipe(recipe.order)) return sampler::PassLength(*parsed);
  }
  return sampler::PassLength(FromFields(recipe));
}

bool TakeOrder(std::string_view order, Recipe& recipe) {
  const auto parsed = sampler::ParseRecipe(order);
  if (!parsed || parsed->world != recipe.world) return false;
  recipe.order = order;
  recipe.known = true;
  return true;
}

}  // namespace optcache::coordination
