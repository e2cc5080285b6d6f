#include "sampler/recipe_text.h"

#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

using testing::HasSubstr;

const std::vector<std::pair<Recipe, std::string>>& Examples() {
  static const std::vector<std::pair<Recipe, std::string>> examples = {
      {{.size = 9}, "torch-distributed size=9"},
      {{.kind = Kind::kSequential, .size = 9, .shuffle = false}, "sequential size=9 shuffle=false"},
      {{.size = 1'281'167, .seed = -5, .world = 8, .drop_last = true, .block = 32},
       "torch-distributed size=1281167 seed=-5 world=8 drop_last=true block=32"},
      {{.kind = Kind::kTorchRandom,
        .size = 9,
        .modern_randperm = false,
        .base_seed = BaseSeed::kNever,
        .tail_permutation = false,
        .replacement = true,
        .draws = 20},
       "torch-random size=9 modern_randperm=false base_seed=never tail_permutation=false "
       "replacement=true draws=20"},
      {{.kind = Kind::kMegatronCyclic, .size = 9, .drop_last = true, .sharded = false},
       "megatron-cyclic size=9 drop_last=true sharded=false"},
      {{.kind = Kind::kSpdlRandom, .size = 9, .drop_last = true, .subset = {{0, 4}, {100, 5}}},
       "spdl-random size=9 drop_last=true subset=0+4,100+5"},
  };
  return examples;
}

TEST(RecipeText, SaysWhatDiffersFromTheDefaults) {
  for (const auto& [recipe, text] : Examples())
    EXPECT_EQ(FormatRecipe(recipe), text);
}

TEST(RecipeText, ReadsBack) {
  for (const auto& [recipe, text] : Examples())
    EXPECT_EQ(ParseRecipe(text).value(), recipe) << text;
}

TEST(RecipeText, TheLongestFits) {
  Recipe recipe{.kind = Kind::kTorchRandom,
                .size = kMaxRanges,
                .seed = std::numeric_limits<std::int64_t>::min(),
                .modern_randperm = false,
                .base_seed = BaseSeed::kEveryPass,
                .replacement = true,
                .draws = kMaxDraws,
                .subset = std::vector<IdRange>(kMaxRanges, {kMaxSize - 1, 1})};
  EXPECT_EQ(ParseRecipe(FormatRecipe(recipe)).value(), recipe);
  EXPECT_LT(FormatRecipe(recipe).size(), kMaxRecipeBytes);
}

TEST(RecipeText, RefusesWhatItDoesNotKnow) {
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"", "unknown sampler ''"},
           {"torch", "write one of sequential"},
           {"torch-distributed size=9 temperature=3", "'temperature=3' is not known"},
           {"torch-distributed size", "'' is no value of size"},
           {"torch-distributed size=", "'' is no value of size"},
           {"torch-distributed size=9x", "'9x' is no value of size"},
           {"torch-distributed size=-9", "'-9' is no value of size"},
           {"torch-distributed size=99999999999999999999", "is no value of size"},
           {"torch-distributed  size=9", "'' is not known"},
           {"torch-distributed size=9 shuffle=yes", "'yes' is no value of shuffle"},
           {"torch-random size=9 base_seed=once", "'once' is no value of base_seed"},
           {"torch-distributed size=9 subset=3", "'3' is no value of subset"},
           {"torch-distributed size=9 subset=3+9,", "is no value of subset"},
           {"torch-distributed size=9 seed=1 size=9", "size is there twice"},
           {"torch-distributed", "size 0"},
           {"torch-distributed size=9 block=0", "block 0"},
       }) {
    const Status status = ParseRecipe(text).error();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(sentence)) << text;
  }
  EXPECT_THAT(ParseRecipe(std::string(kMaxRecipeBytes + 1, 'x')).error().message(),
              HasSubstr("at most 4096"));
  std::string ranges = "torch-distributed size=300 subset=0+1";
  for (int i = 1; i < 300; ++i)
    ranges += ",0+1";
  EXPECT_EQ(ParseRecipe(ranges).error().code(), Code::kInvalidArgument);
}

TEST(RecipeText, NamesTheFirstFieldThatDiffers) {
  const Recipe one{.size = 9, .seed = 3};
  EXPECT_EQ(FirstDifference(one, one), "");
  for (const auto& [other, text] : std::vector<std::pair<Recipe, std::string>>{
           {{.kind = Kind::kSequential, .size = 8}, "sampler: torch-distributed and sequential"},
           {{.size = 8, .seed = 3}, "size: 9 and 8"},
           {{.size = 9, .seed = -4, .world = 2}, "seed: 3 and -4"},
           {{.size = 9, .seed = 3, .world = 2}, "world: 1 and 2"},
           {{.size = 9, .seed = 3, .shuffle = false}, "shuffle: true and false"},
           {{.size = 9, .seed = 3, .drop_last = true}, "drop_last: false and true"},
           {{.size = 9, .seed = 3, .modern_randperm = false}, "modern_randperm: true and false"},
           {{.size = 9, .seed = 3, .base_seed = BaseSeed::kNever},
            "base_seed: every-pass and never"},
           {{.size = 9, .seed = 3, .tail_permutation = false}, "tail_permutation: true and false"},
           {{.size = 9, .seed = 3, .block = 4}, "block: 1 and 4"},
           {{.size = 9, .seed = 3, .subset = {{3, 9}}}, "subset:  and 3+9"},
       }) {
    EXPECT_EQ(FirstDifference(one, other), text);
  }
  const Recipe scattered{.size = 9, .seed = 3, .subset = {300, {.first = 8, .count = 1}}};
  EXPECT_EQ(FirstDifference(one, scattered).size(), 512);
}

}  // namespace
}  // namespace optcache::sampler
