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

TEST(Recipe, DealsRoundsOfBlocks) {
  EXPECT_EQ(RankLength({.size = 50, .world = 2, .block = 4}), 28U);
  EXPECT_EQ(RankLength({.size = 50, .world = 2, .drop_last = true, .block = 4}), 24U);
  EXPECT_EQ(PassLength({.kind = Kind::kTorchRandom, .size = 50, .draws = 120}), 120U);
}

TEST(Recipe, RefusesWhatTheKindCannotDo) {
  ExpectInvalid({.kind = Kind::kMegatronCyclic, .size = 9}, "set drop_last to true");
  ExpectInvalid({.kind = Kind::kSpdlRandom, .size = 9, .shuffle = false, .drop_last = true},
                "spdl-random always shuffles");
  ExpectInvalid({.kind = Kind::kTorchRandom, .size = 9, .block = 2}, "does not deal batches");
  ExpectInvalid({.size = 9, .block = 0}, "block 0 is outside 1 to 16777216");
  ExpectInvalid({.size = 9, .sharded = false}, "set sharded to true");
  ExpectInvalid({.size = 9, .replacement = true}, "set replacement to false");
  ExpectInvalid({.size = 9, .draws = 3}, "set draws to 0");
  ExpectInvalid({.kind = Kind::kTorchRandom, .size = 9, .draws = kMaxDraws + 1},
                "draws 4294967297");
  ExpectInvalid({.kind = Kind::kSpdlRandom, .size = 9, .drop_last = true, .draws = 10},
                "above the limit of 9");
  ExpectInvalid({.kind = Kind::kTorchRandom, .size = 9, .tail_permutation = false, .draws = 10},
                "before torch 1.12");
}

TEST(Recipe, RefusesSubsetsThatDoNotFit) {
  ExpectInvalid({.size = 9, .subset = {{0, 8}}}, "subset has 8 samples, but size is 9");
  ExpectInvalid({.size = 9, .subset = {{0, 9}, {3, 0}}}, "0 samples from 3");
  ExpectInvalid({.size = 9, .subset = {{kMaxSize, 9}}}, "beyond the limit");
  ExpectInvalid({.size = 200, .subset = std::vector<IdRange>(200, {0, 1})}, "200 ranges");
  EXPECT_TRUE(Validate({.size = 9, .subset = {{5, 4}, {0, 5}}}).ok());
}

TEST(Recipe, KnowsWhatTheDatasetMustHave) {
  EXPECT_EQ(SamplesNeeded({.size = 9}), 9U);
  EXPECT_EQ(SamplesNeeded({.size = 9, .subset = {{5, 4}, {1, 5}}}), 9U);
  EXPECT_EQ(SamplesNeeded({.size = 9, .subset = {{50, 9}}}), 59U);
}

TEST(Recipe, TellsWhatOlderPartsKnow) {
  EXPECT_TRUE(IsBasic({.size = 9, .world = 4, .drop_last = true}));
  EXPECT_TRUE(IsBasic({.kind = Kind::kTorchRandom, .size = 9, .base_seed = BaseSeed::kNever}));
  EXPECT_FALSE(IsBasic({.size = 9, .block = 2}));
  EXPECT_FALSE(IsBasic({.size = 9, .subset = {{1, 9}}}));
  EXPECT_FALSE(IsBasic({.kind = Kind::kTorchRandom, .size = 9, .replacement = true}));
  EXPECT_FALSE(IsBasic({.kind = Kind::kSpdlRandom, .size = 9, .drop_last = true}));
}

TEST(Recipe, NamesReadBack) {
  for (const Kind kind : {Kind::kSequential, Kind::kTorchDistributed, Kind::kTorchRandom,
                          Kind::kMegatronCyclic, Kind::kSpdlRandom}) {
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
            "unknown sampler 'torch': write one of sequential, torch-distributed, torch-random, "
            "megatron-cyclic, spdl-random");
}

TEST(Recipe, ComparesEveryField) {
  const Recipe recipe{.size = 9};
  EXPECT_EQ(recipe, (Recipe{.size = 9}));
  EXPECT_NE(recipe, (Recipe{.size = 9, .modern_randperm = false}));
  EXPECT_NE(recipe, (Recipe{.size = 9, .base_seed = BaseSeed::kNever}));
}

}  // namespace
}  // namespace optcache::sampler
