#include "sampler/random_sampler.h"

#include <gtest/gtest.h>

#include "sampler/randperm.h"

namespace optcache::sampler {
namespace {

constexpr Recipe kDrawnRecipe{.kind = Kind::kTorchRandom, .size = 200, .seed = 9};

// What a DataLoader with this recipe draws in its first passes, in the order in which it draws.
std::vector<std::vector<SampleId>> DrawnPasses(const Recipe& recipe, int passes) {
  Mt19937 generator(static_cast<std::uint64_t>(recipe.seed));
  std::vector<std::vector<SampleId>> orders;
  for (int pass = 0; pass < passes; ++pass) {
    const bool seeds_workers = recipe.base_seed == BaseSeed::kEveryPass ||
                               (recipe.base_seed == BaseSeed::kFirstPass && pass == 0);
    if (seeds_workers) generator.Next64();
    orders.push_back(MakeRandperm(recipe.size, Randperm::kNarrow, generator));
    if (recipe.tail_permutation) (void)MakeRandperm(recipe.size, Randperm::kNarrow, generator);
  }
  return orders;
}

TEST(RandomSampler, DrawsItsPassesFromOneGenerator) {
  for (const BaseSeed base_seed : {BaseSeed::kEveryPass, BaseSeed::kFirstPass, BaseSeed::kNever}) {
    for (const bool tail : {true, false}) {
      Recipe recipe = kDrawnRecipe;
      recipe.base_seed = base_seed;
      recipe.tail_permutation = tail;
      const auto expected = DrawnPasses(recipe, 5);
      RandomSampler sampler(recipe);
      for (std::uint64_t pass = 0; pass < 5; ++pass) {
        ASSERT_EQ(sampler.PassOrder(pass).value(), expected[pass]) << BaseSeedName(base_seed);
      }
    }
  }
}

TEST(RandomSampler, GoesForwardBackwardAndStays) {
  const auto expected = DrawnPasses(kDrawnRecipe, 6);
  RandomSampler sampler(kDrawnRecipe);
  for (const std::uint64_t pass : {3U, 3U, 5U, 0U, 1U, 4U, 2U}) {
    ASSERT_EQ(sampler.PassOrder(pass).value(), expected[pass]) << pass;
  }
}

TEST(RandomSampler, OneSampleNeedsNoRandomWords) {
  Recipe recipe = kDrawnRecipe;
  recipe.size = 1;
  recipe.base_seed = BaseSeed::kNever;
  EXPECT_EQ(RandomSampler(recipe).PassOrder(~0ULL).value(), std::vector<SampleId>{0});
}

TEST(RandomSampler, RefusesAPassThatWouldTakeMinutesToReach) {
  RandomSampler sampler(kDrawnRecipe);
  const std::uint64_t words_a_pass = 2 + 2 * (kDrawnRecipe.size - 1);
  const std::uint64_t too_far = RandomSampler::kMaxSkippedWords / words_a_pass + 1;
  EXPECT_EQ(sampler.PassOrder(too_far).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sampler.PassOrder(~0ULL).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(sampler.PassOrder(0).value(), DrawnPasses(kDrawnRecipe, 1)[0]);  // still usable
}

// Word by word: RandomSampler(replacement=True, num_samples=draws).
TEST(RandomSampler, DrawsWithReplacement) {
  Recipe recipe = kDrawnRecipe;
  recipe.replacement = true;
  recipe.draws = 33;
  Mt19937 generator(9);
  RandomSampler sampler(recipe);
  for (std::uint64_t pass = 0; pass < 4; ++pass) {
    generator.Next64();
    std::vector<SampleId> expected(33);
    for (SampleId& id : expected)
      id = generator.Next() % 200;
    ASSERT_EQ(sampler.PassOrder(pass).value(), expected);
  }
  ASSERT_EQ(sampler.PassOrder(1).value(), RandomSampler(recipe).PassOrder(1).value());
}

TEST(RandomSampler, DrawsWithReplacementFromManyByTwoWords) {
  Recipe recipe{
      .kind = Kind::kTorchRandom, .size = kWideRandintFrom, .replacement = true, .draws = 5};
  Mt19937 generator(0);
  generator.Next64();
  std::vector<SampleId> expected(5);
  for (SampleId& id : expected)
    id = static_cast<SampleId>(generator.Next64() % kWideRandintFrom);
  EXPECT_EQ(RandomSampler(recipe).PassOrder(0).value(), expected);
  recipe.modern_randperm = false;
  EXPECT_NE(RandomSampler(recipe).PassOrder(0).value(), expected);
}

// num_samples without replacement: whole permutations, then a cut one that is drawn in any case.
TEST(RandomSampler, GoesOnWithAnotherPermutation) {
  for (const std::uint64_t draws : {1U, 199U, 200U, 201U, 400U, 650U}) {
    Recipe recipe = kDrawnRecipe;
    recipe.draws = draws;
    Mt19937 generator(9);
    RandomSampler sampler(recipe);
    for (std::uint64_t pass = 0; pass < 3; ++pass) {
      generator.Next64();
      std::vector<SampleId> expected;
      for (std::uint64_t i = 0; i <= draws / 200; ++i) {
        const auto permutation = MakeRandperm(200, Randperm::kNarrow, generator);
        expected.insert(expected.end(), permutation.begin(), permutation.end());
      }
      expected.resize(draws);
      ASSERT_EQ(sampler.PassOrder(pass).value(), expected) << draws;
    }
  }
}

}  // namespace
}  // namespace optcache::sampler
