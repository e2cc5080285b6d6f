#include "dataset/glob.h"

#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

bool Matches(std::string pattern, std::string_view path) {
  return GlobSet::Compile({std::move(pattern)}).value().Matches(path);
}

TEST(Glob, StarsStayWithinAComponent) {
  EXPECT_TRUE(Matches("*.jpg", "a.jpg"));
  EXPECT_TRUE(Matches("*.jpg", ".jpg"));
  EXPECT_FALSE(Matches("*.jpg", "x/a.jpg"));
  EXPECT_FALSE(Matches("*.jpg", "a.JPG"));
  EXPECT_TRUE(Matches("train/*/a*b*.jpg", "train/n01/axxbyy.jpg"));
  EXPECT_FALSE(Matches("train/*/a*b*.jpg", "train/n01/axx.jpg"));
}

TEST(Glob, TwoStarsStandForAnyComponentsAlsoNone) {
  EXPECT_TRUE(Matches("**/*.jpg", "a.jpg"));
  EXPECT_TRUE(Matches("**/*.jpg", "x/y/z/a.jpg"));
  EXPECT_TRUE(Matches("x/**/a.jpg", "x/a.jpg"));
  EXPECT_TRUE(Matches("x/**", "x/y/z"));
  EXPECT_TRUE(Matches("x/**", "x"));
  EXPECT_FALSE(Matches("x/**/a.jpg", "y/x/a.jpg"));
  EXPECT_TRUE(Matches("**/b/**/c", "a/b/b/d/c"));
}

TEST(Glob, QuestionMarkIsOneByte) {
  EXPECT_TRUE(Matches("a?c", "abc"));
  EXPECT_FALSE(Matches("a?c", "ac"));
  EXPECT_FALSE(Matches("a?c", "a/c"));
}

TEST(Glob, OtherCharactersMeanThemselves) {
  EXPECT_TRUE(Matches("a[1].{jpg}", "a[1].{jpg}"));
  EXPECT_FALSE(Matches("a[1]", "a1"));
}

TEST(Glob, AnEmptySetMatchesNothing) {
  const GlobSet none = GlobSet::Compile({}).value();
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.Matches("a"));
}

TEST(Glob, ManyStarsDoNotTakeForever) {
  std::string pattern;
  for (int i = 0; i < 30; ++i)
    pattern += "*a";
  EXPECT_FALSE(Matches(pattern + "b", std::string(4000, 'a')));
}

TEST(Glob, RefusesPatternsThatWouldSurprise) {
  for (const std::string pattern : {"", "/a", "a**", "**.jpg", "x/**y/z"}) {
    const auto set = GlobSet::Compile({pattern});
    ASSERT_FALSE(set.has_value()) << pattern;
    EXPECT_EQ(set.error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(GlobSet::Compile({std::string(kGlobBytesMax + 1, 'a')}).has_value());
  EXPECT_FALSE(GlobSet::Compile(std::vector<std::string>(kGlobsMax + 1, "a")).has_value());
}

}  // namespace
}  // namespace optcache::dataset
