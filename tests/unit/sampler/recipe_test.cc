#include "sampler/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

using testing::HasSubstr;

void ExpectInvalid(const Recipe& recipe, const std::string& sentence) {
  const Status status = Validate(recipe);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(sentence));
}

TEST(Recipe, AcceptsTheLimitsThemselves) {
  EXPECT_TRUE(Validate({.size = 1}).ok());
  EXPECT_TRUE(Validate({.size = kMaxSize, .seed = -1, .world = kMaxWorld}).ok());
  EXPECT_TRUE(Validate({.kind = Kind::kSequential, .size = 1, .shuffle = false}).ok());
  EXPECT_TRUE(Validate({.kind = Kind::kTorchRandom, .size = 1}).ok());
}

TEST(Recipe, RefusesSizesAndWorldsOutsideTheLimits) {
  ExpectInvalid({.size = 0}, "size 0");
  ExpectInvalid({.size = kMaxSize + 1}, "above the limit of 4294967294");
  ExpectInvalid({.size = 9, .world = 0}, "world 0 is outside 1 to 65536");
  ExpectInvalid({.size = 9, .world = kMaxWorld + 1}, "world 65537 is outside 1 to 65536");
}

TEST(Recipe, RefusesWhatOnlyDistributedSamplersCanDo) {
  ExpectInvalid({.kind = Kind::kTorchRandom, .size = 9, .world = 2}, "set world to 1");
  ExpectInvalid({.kind = Kind::kSequential, .size = 9, .world = 2}, "use torch-distributed");
  ExpectInvalid({.kind = Kind::kTorchRandom, .size = 9, .drop_last = true}, "has no drop_last");
  ExpectInvalid({.kind = Kind::kTorchRandom, .size = 9, .shuffle = false}, "use sequential");
}

TEST(Recipe, RefusesNumbersThatNameNothing) {
  ExpectInvalid({.kind = static_cast<Kind>(77), .size = 9}, "sampler kind 77 is not known");
  ExpectInvalid({.size = 9, .base_seed = static_cast<BaseSeed>(9)}, "base_seed 9 is not known");
}

TEST(Recipe, PadsOrCutsToEqualShares) {
  EXPECT_EQ(RankLength({.size = 10, .world = 4}), 3U);
  EXPECT_EQ(PassLength({.size = 10, .world = 4}), 12U);
  EXPECT_EQ(RankLength({.size = 10, .world = 4, .drop_last = true}), 2U);
  EXPECT_EQ(PassLength({.size = 10, .world = 4, .drop_last = true}), 8U);
  EXPECT_EQ(PassLength({.size = 8, .world = 4, .drop_last = true}), 8U);
  EXPECT_EQ(PassLength({.size = 3, .world = 8}), 8U);
  EXPECT_EQ(PassLength({.size = 3, .world = 8, .drop_last = true}), 0U);
}

TEST(Recipe, NamesTheFirstFieldThatDiffers) {
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
       }) {
    EXPECT_EQ(FirstDifference(one, other), text);
  }
}

TEST(Recipe, NamesReadBack) {
  for (const Kind kind : {Kind::kSequential, Kind::kTorchDistributed, Kind::kTorchRandom}) {
    EXPECT_EQ(ParseKind(KindName(kind)).value(), kind);
  }
  for (const BaseSeed base_seed : {BaseSeed::kEveryPass, BaseSeed::kFirstPass, BaseSeed::kNever}) {
    EXPECT_EQ(ParseBaseSeed(BaseSeedName(base_seed)).value(), base_seed);
  }
}

TEST(Recipe, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const Status status = ParseKind("torch").error();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "unknown sampler 'torch': write one of sequential, torch-distributed, torch-random");
}

TEST(Recipe, ComparesEveryField) {
  const Recipe recipe{.size = 9};
  EXPECT_EQ(recipe, (Recipe{.size = 9}));
  EXPECT_NE(recipe, (Recipe{.size = 9, .modern_randperm = false}));
  EXPECT_NE(recipe, (Recipe{.size = 9, .base_seed = BaseSeed::kNever}));
}

}  // namespace
}  // namespace optcache::sampler
