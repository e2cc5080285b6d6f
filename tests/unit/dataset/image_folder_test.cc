#include "dataset/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Numbered(const std::vector<std::string_view>& paths,
                                  const ImageFolder& folder) {
  std::vector<std::string> ordered;
  for (const auto member : folder.members)
    ordered.emplace_back(paths[member]);
  return ordered;
}

TEST(ImageFolder, NumbersClassByClassThenFolderByFolder) {
  const std::vector<std::string_view> paths = {
      "a/b/1.png", "a/a-x/1.png", "a/z.png", "a-x/1.png", "a b/1.png",
      "A/1.png",   "a/b 1/1.png", "a/B.PNG", "top.png",   "a/notes.txt"};
  const ImageFolder folder = NumberAsImageFolder(paths, {"a", "a-x", "a b", "A"}, {}).value();
  EXPECT_THAT(folder.classes, ElementsAre("A", "a", "a b", "a-x"));
  EXPECT_THAT(Numbered(paths, folder),
              ElementsAre("A/1.png", "a/B.PNG", "a/z.png", "a/a-x/1.png", "a/b/1.png",
                          "a/b 1/1.png", "a b/1.png", "a-x/1.png"));
  EXPECT_THAT(folder.class_of, ElementsAre(0, 1, 1, 1, 1, 1, 2, 3));
}

TEST(ImageFolder, IncludePatternsReplaceTheExtensions) {
  const std::vector<std::string_view> paths = {"a/1.png", "a/2.npy"};
  const GlobSet include = GlobSet::Compile({"**/*.npy"}).value();
  EXPECT_THAT(Numbered(paths, NumberAsImageFolder(paths, {"a"}, include).value()),
              ElementsAre("a/2.npy"));
}

TEST(ImageFolder, AFolderWithoutImagesIsAnErrorThatNamesIt) {
  const auto result = NumberAsImageFolder({"a/1.png", "b/1.txt"}, {"a", "b", "c"}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(result.error().message(), HasSubstr("b, c"));
  EXPECT_THAT(result.error().message(), HasSubstr("--order path"));
}

TEST(ImageFolder, NoFolderIsAnError) {
  EXPECT_EQ(NumberAsImageFolder({"1.png"}, {}, {}).error().code(), Code::kInvalidArgument);
}

TEST(ImageFolder, ExtensionsIgnoreCase) {
  for (const std::string_view name : {"x.jpg", "x.JPeG", "x.Png", "x.ppm", "x.bmp", "x.pgm",
                                      "x.tif", "x.TIFF", "x.webp", ".jpg", "a.txt.jpg"}) {
    EXPECT_TRUE(IsImage(name)) << name;
  }
  for (const std::string_view name : {"x.jpgx", "jpg", "x.gif", "", "x.jpg "}) {
    EXPECT_FALSE(IsImage(name)) << name;
  }
}

TEST(PythonSortKey, LeavesUtf8AsItIs) {
  for (const std::string_view name : {"plain", "\xc3\xa9", "\xed\x9f\xbf", "\xee\x80\x80",
                                      "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(PythonSortKey(name), name);
  }
}

TEST(PythonSortKey, TurnsOtherBytesIntoSurrogates) {
  EXPECT_EQ(PythonSortKey("\x80"), "\xed\xb2\x80");
  EXPECT_EQ(PythonSortKey("\xff"), "\xed\xb3\xbf");
  EXPECT_EQ(PythonSortKey("a\xe2\x82"), "a\xed\xb3\xa2\xed\xb2\x82");                // cut short
  EXPECT_EQ(PythonSortKey("\xc0\x80"), "\xed\xb3\x80\xed\xb2\x80");                  // overlong
  EXPECT_EQ(PythonSortKey("\xed\xb2\x80"), "\xed\xb3\xad\xed\xb2\xb2\xed\xb2\x80");  // surrogate
  EXPECT_EQ(PythonSortKey("\xf4\x90\x80\x80").size(), 12U);  // beyond U+10FFFF
}

TEST(PythonSortKey, OrdersAsPythonDoes) {
  // sorted() of these file names in Python 3: U+00E9 < U+D7FF < U+DC80 < U+E000 < U+1F600.
  EXPECT_LT(PythonSortKey("\xc3\xa9"), PythonSortKey("\x80"));
  EXPECT_LT(PythonSortKey("\xed\x9f\xbf"), PythonSortKey("\x80"));
  EXPECT_LT(PythonSortKey("\xff"), PythonSortKey("\xee\x80\x80"));
  EXPECT_LT(PythonSortKey("\xff"), PythonSortKey("\xf0\x9f\x98\x80"));
}

}  // namespace
}  // namespace optcache::dataset
