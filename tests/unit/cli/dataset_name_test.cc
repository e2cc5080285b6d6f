#include "cli/local/dataset_name.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

const std::vector<std::string> kNames = {"vision/images", "speech/words", "audio/images"};

TEST(PlaceOfDataset, IsByTheWholeNameOrItsLastPart) {
  EXPECT_EQ(PlaceOfDataset(kNames, "words"), 1U);
  EXPECT_EQ(PlaceOfDataset(kNames, "speech/words"), 1U);
  EXPECT_EQ(PlaceOfDataset(kNames, "audio/images"), 2U);
}

TEST(PlaceOfDataset, PrefersTheOneThatIsTheWord) {
  EXPECT_EQ(PlaceOfDataset({"vision/images", "images", "audio/images"}, "images"), 1U);
}

TEST(PlaceOfDataset, NamesTheCandidatesOfAnAmbiguousWord) {
  EXPECT_EQ(
      PlaceOfDataset(kNames, "images").error(),
      Status(Code::kInvalidArgument,
             "several datasets have the name images: vision/images, audio/images. Write one with "
             "its namespace, for example vision/images"));
}

TEST(PlaceOfDataset, WhatIsNotThereNamesWhatIs) {
  for (const char* word : {"", "mages", "vision", "vision/", "/words", "other/words"}) {
    EXPECT_EQ(
        PlaceOfDataset(kNames, word).error(),
        Status(Code::kNotFound, std::string("there is no dataset ") + word +
                                    "; there are: vision/images, speech/words, audio/images"));
  }
  EXPECT_EQ(PlaceOfDataset({}, "words").error(),
            Status(Code::kNotFound, "there is no dataset words; the cache has no dataset yet"));
}

struct Named {
  std::string name_space;
  std::string Name() const { return name_space + "/images"; }
};

TEST(FindDataset, PointsAtTheOneOfThatName) {
  const std::vector<Named> datasets = {{"vision"}, {"audio"}};
  EXPECT_EQ(FindDataset(datasets, "audio/images", &Named::Name), &datasets[1]);
  EXPECT_EQ(FindDataset(datasets, "images", &Named::Name).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::cli
