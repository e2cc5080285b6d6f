#include "storage/internal/guessed_cuts.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/utf8.h"
#include "support/seeds.h"

namespace optcache::storage::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Guesses(const std::vector<std::string>& keys, size_t cuts_max,
                                 std::string_view end = "") {
  return GuessCuts({.keys = {keys.begin(), keys.end()}, .end = end}, cuts_max);
}

std::vector<std::string> Numbers(int from, int count) {
  std::vector<std::string> keys;
  for (int number = from; number < from + count; ++number)
    keys.push_back(fmt::format("train/img_{:07}.jpg", number));
  return keys;
}

int NumberOf(const std::string& key) {
  return std::stoi(key.substr(std::string("train/img_").size()));
}

TEST(GuessedCuts, NumbersGoOnToPowersOfWhatWasSeen) {
  // 9,999 pages are possible, the first piece has four: each end is 7.07 times as far.
  const std::vector<std::string> guesses = Guesses(Numbers(0, 1001), 3);
  ASSERT_EQ(guesses.size(), 3U);
  EXPECT_NEAR(NumberOf(guesses[0]), 1'000 + 28'281, 10);
  EXPECT_NEAR(NumberOf(guesses[1]), 1'000 + 199'980, 100);
  EXPECT_NEAR(NumberOf(guesses[2]), 1'000 + 1'414'072, 1000);
}

TEST(GuessedCuts, UpToAnEndThatIsKnownTheyAreEven) {
  EXPECT_THAT(Guesses(Numbers(0, 1001), 3, "train/img_0041000"),
              ElementsAre("train/img_0011000", "train/img_0021000", "train/img_0031000"));
  EXPECT_THAT(Guesses(Numbers(0, 1001), 15, "train/img_0009000"), ElementsAre("train/img_0005000"))
      << "four pages each";
}

TEST(GuessedCuts, AnotherFolderIsNoEndOfNumbers) {
  EXPECT_EQ(Guesses(Numbers(0, 1001), 3, "train2/"), Guesses(Numbers(0, 1001), 3));
}

TEST(GuessedCuts, DigestsAreHexadecimal) {
  std::vector<std::string> keys;
  for (int number = 0; number < 1000; ++number)
    keys.push_back(fmt::format("{:08x}", number * 4096));
  const std::vector<std::string> guesses = Guesses(keys, 7);
  ASSERT_EQ(guesses.size(), 7U);
  EXPECT_GT(guesses.back(), "4");
  for (const std::string& guess : guesses)
    EXPECT_EQ(guess.find_first_not_of("0123456789abcdef"), std::string::npos) << guess;
}

TEST(GuessedCuts, WhatStandsBetweenDigitsStays) {
  std::vector<std::string> keys;
  for (int number = 0; number < 100; ++number)
    keys.push_back(fmt::format("cam-07_{:06}.png", number));
  for (const std::string& guess : Guesses(keys, 5))
    EXPECT_THAT(guess, testing::MatchesRegex("cam-[0-9][0-9]_[0-9]+")) << guess;
}

// Its digits are bytes, of which one alone is no text.
TEST(GuessedCuts, LettersOfSeveralBytesAreNotCut) {
  const auto letter = [](int number) {
    const auto code = static_cast<unsigned>(0x4e00 + number);
    return std::string{static_cast<char>(0xe0U | code >> 12U),
                       static_cast<char>(0x80U | (code >> 6U & 0x3fU)),
                       static_cast<char>(0x80U | (code & 0x3fU))};
  };
  std::vector<std::string> keys;
  for (int number = 0; number < 1000; ++number)
    keys.push_back(letter(2 * number) + letter(number * 37 % 20000));
  const std::vector<std::string> guesses = Guesses(keys, 15);
  EXPECT_THAT(guesses, testing::Not(IsEmpty()));
  for (const std::string& guess : guesses)
    EXPECT_TRUE(IsUtf8(guess)) << Visible(guess);
}

TEST(GuessedCuts, WithoutAPatternThereAreNone) {
  EXPECT_THAT(Guesses({}, 3), IsEmpty());
  EXPECT_THAT(Guesses({"a"}, 3), IsEmpty());
  EXPECT_THAT(Guesses(Numbers(0, 1001), 0), IsEmpty());
  EXPECT_THAT(Guesses({"a/1", "b/1"}, 3), IsEmpty()) << "folders are known without a guess";
  EXPECT_THAT(Guesses(Numbers(9998999, 1001), 3), IsEmpty()) << "nothing is ahead";
  EXPECT_THAT(Guesses({"a", "ab"}, 3), IsEmpty());
}

TEST(GuessedCuts, AreAscendingAndWithinWhateverTheKeys) {
  const std::uint64_t seed = TestSeed(20261123);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> keys;
    const std::uint64_t letters = random.Below(255) + 1;
    for (std::uint64_t count = random.Below(30) + 2; count > 0; --count) {
      std::string key = "x";
      for (std::uint64_t length = random.Below(40); length > 0; --length)
        key += static_cast<char>(random.Below(letters) + 1);
      keys.push_back(std::move(key));
    }
    std::ranges::sort(keys);
    const std::string end = random.Below(2) == 0 ? "" : keys.back() + "\x01";
    if (!end.empty()) keys.resize(std::max<size_t>(keys.size() / 2, 1));
    std::string before = keys.back();
    for (const std::string& guess : Guesses(keys, random.Below(16), end)) {
      EXPECT_TRUE(IsUtf8(guess)) << Visible(guess);
      EXPECT_GT(guess, before);
      EXPECT_TRUE(end.empty() || guess < end);
      before = guess;
    }
  }
}

}  // namespace
}  // namespace optcache::storage::internal
