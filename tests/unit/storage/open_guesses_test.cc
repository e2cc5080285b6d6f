#include "storage/internal/open_guesses.h"

#include <gtest/gtest.h>

namespace optcache::storage::internal {
namespace {

TEST(OpenGuesses, AreOpenUntilTheServerTakesThem) {
  OpenGuesses guesses;
  guesses.Add("b");
  guesses.Add("d");
  EXPECT_EQ(guesses.size(), 2U);
  guesses.Take("b");
  EXPECT_EQ(guesses.size(), 1U);
  EXPECT_EQ(guesses.Reach("b", "a"), std::nullopt) << "others list what follows";
}

TEST(OpenGuesses, ARefusedRangeIsListedByTheOneBeforeIt) {
  OpenGuesses guesses;
  guesses.Add("b");
  guesses.Add("d");
  EXPECT_EQ(guesses.Refuse("d", ""), std::nullopt);
  EXPECT_EQ(guesses.Refuse("b", "d"), std::nullopt);
  EXPECT_EQ(guesses.size(), 0U);
  EXPECT_EQ(guesses.Reach("b", "a"), "d");
  EXPECT_EQ(guesses.Reach("d", "c"), "") << "that one was refused, too";
}

TEST(OpenGuesses, ARefusedRangeBeginsAfterTheLastKeyBeforeIt) {
  OpenGuesses guesses;
  guesses.Add("b");
  EXPECT_EQ(guesses.Reach("b", "a"), std::nullopt);
  EXPECT_EQ(guesses.size(), 1U) << "the server has not been asked";
  EXPECT_EQ(guesses.Refuse("b", "d"), "a");
  EXPECT_EQ(guesses.size(), 0U);
}

TEST(OpenGuesses, NothingElseIsRefused) {
  OpenGuesses guesses;
  guesses.Add("b");
  guesses.Take("b");
  EXPECT_DEATH(guesses.Refuse("b", "d"), "CHECK failed");
}

TEST(OpenGuesses, OtherEndsAreNoGuesses) {
  OpenGuesses guesses;
  EXPECT_EQ(guesses.Reach("folder/", "a"), std::nullopt);
  EXPECT_EQ(guesses.size(), 0U);
}

}  // namespace
}  // namespace optcache::storage::internal
