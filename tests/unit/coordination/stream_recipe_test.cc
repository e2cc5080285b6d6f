#include "coordination/stream_recipe.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

TEST(PassLength, PadsOrDropsTheRest) {
  EXPECT_EQ(PassLength({.size = 10, .world = 4, .drop_last = false}), 12U);
  EXPECT_EQ(PassLength({.size = 10, .world = 4, .drop_last = true}), 8U);
  EXPECT_EQ(PassLength({.size = 8, .world = 4, .drop_last = false}), 8U);
  EXPECT_EQ(PassLength({.size = 2, .world = 4, .drop_last = true}), 0U);
}

TEST(PassLength, IsThatOfTheRecipeAsText) {
  EXPECT_EQ(PassLength({.size = 10, .order = "torch-random size=10 draws=25"}), 25U);
}

TEST(SamplerRecipe, IsMadeOfTheFieldsOrOfTheText) {
  const Recipe fields{.sampler_kind = 1, .size = 10, .seed = 4, .world = 2};
  EXPECT_EQ(SamplerRecipe(fields).value(), (sampler::Recipe{.size = 10, .seed = 4, .world = 2}));
  Recipe text = fields;
  text.order = "torch-distributed size=10 world=2 block=3";
  EXPECT_EQ(SamplerRecipe(text).value(), (sampler::Recipe{.size = 10, .world = 2, .block = 3}));
  EXPECT_FALSE(SamplerRecipe({.sampler_kind = 77, .size = 10}).has_value());
  EXPECT_FALSE(SamplerRecipe({.order = "newer"}).has_value());
}

TEST(TakeOrder, TakesWhatItCanReadForTheSameWorld) {
  Recipe recipe{.size = 10, .world = 2, .known = false};
  EXPECT_FALSE(TakeOrder("", recipe));
  EXPECT_FALSE(TakeOrder("newer size=10 world=2", recipe));
  EXPECT_FALSE(TakeOrder("torch-distributed size=10", recipe));
  EXPECT_FALSE(recipe.known);
  EXPECT_TRUE(TakeOrder("torch-distributed size=10 world=2 block=3", recipe));
  EXPECT_TRUE(recipe.known);
  EXPECT_EQ(recipe.order, "torch-distributed size=10 world=2 block=3");
}

}  // namespace
}  // namespace optcache::coordination
