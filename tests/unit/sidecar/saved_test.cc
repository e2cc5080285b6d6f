#include "sidecar/clients/saved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

using testing::ElementsAre;

TEST(Delivered, CountsSamplesBySource) {
  Delivered delivered;
  delivered.Add(Source::kNode, 10, 10);
  delivered.Add(Source::kPeer, 20, 20);
  delivered.Add(Source::kStore, 30, 30);
  delivered.Add(Source::kStore, 40, 40);
  EXPECT_THAT(delivered.samples, ElementsAre(1, 1, 2));
  EXPECT_THAT(delivered.bytes, ElementsAre(10, 20, 70));
  EXPECT_EQ(delivered.uncached, (StoreCost{.requests = 4, .bytes = 100}));
}

TEST(Delivered, WithoutACacheEachReadCostsItsRangeOfTheSource) {
  Delivered delivered;
  delivered.Add(Source::kNode, 100, 612);  // members of an archive: headers lie between them
  delivered.Add(Source::kStore, 0, 0);     // an empty object
  delivered.Add(Source::kStore, 0, std::nullopt);  // an empty file of an archive
  EXPECT_EQ(delivered.uncached, (StoreCost{.requests = 2, .bytes = 612}));
}

TEST(Saved, IsWhatTheStoreWasNotAskedFor) {
  const StoreCost uncached{.requests = 10, .bytes = 1000};
  EXPECT_EQ(SavedBy(uncached, {.requests = 3, .bytes = 250}), (Saved{.requests = 7, .bytes = 750}));
}

TEST(Saved, IsBelowZeroWhileMoreWasReadThanDelivered) {
  EXPECT_EQ(SavedBy({.requests = 1, .bytes = 10}, {.requests = 4, .bytes = 40}),
            (Saved{.requests = -3, .bytes = -30}));
}

TEST(SavedSentence, SaysAgainstWhat) {
  const DatasetSaved images{.dataset = "vision/images",
                            .saved = {.requests = 870, .bytes = 3 * 1024},
                            .cost = std::nullopt,
                            .wait = std::chrono::milliseconds(1500)};
  EXPECT_EQ(
      SavedSentence({images}),
      "saved 870 requests and 3.00 KiB of vision/images, compared with the same reads without "
      "a cache. Its processes waited 1.5 s for samples.");
}

TEST(SavedSentence, NamesAllDatasetsAndTheMoneyOfThoseWithPrices) {
  const DatasetSaved images{.dataset = "vision/images",
                            .saved = {.requests = 870, .bytes = 3 * 1024},
                            .cost = 8.356,
                            .wait = std::chrono::seconds(1)};
  const DatasetSaved text{.dataset = "nlp/text",
                          .saved = {.requests = -2, .bytes = -1024},
                          .cost = std::nullopt,
                          .wait = std::chrono::seconds(2)};
  EXPECT_EQ(
      SavedSentence({images, text}),
      "saved 870 requests and 3.00 KiB of vision/images (8.36 by its prices), -2 requests and "
      "-1.00 KiB of nlp/text, compared with the same reads without a cache. Its processes "
      "waited 3.0 s for samples.");
}

TEST(SavedSentence, IsEmptyWhereNothingWasRead) {
  EXPECT_EQ(SavedSentence({}), "");
}

}  // namespace
}  // namespace optcache::sidecar
