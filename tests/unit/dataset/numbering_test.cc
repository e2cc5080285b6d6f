#include "dataset/numbering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Listing ListingOf(std::vector<std::string> paths, std::vector<std::string> folders = {}) {
  Listing listing = {.objects = {}, .top_folders = std::move(folders)};
  for (std::string& path : paths)
    listing.objects.push_back({.path = std::move(path), .size = 1});
  return listing;
}

TEST(Numbering, ChoosesImageFolderWhereImagesLieInFolders) {
  const Numbering n =
      NumberSamples(ListingOf({"b/1.png", "a/1.png", "top.png"}, {"a", "b"}), {}).value();
  EXPECT_EQ(n.order, Order::kImageFolder);
  EXPECT_THAT(n.objects, ElementsAre(1, 0));
  EXPECT_THAT(n.classes, ElementsAre("a", "b"));
  EXPECT_THAT(n.class_of, ElementsAre(0, 1));
}

TEST(Numbering, ChoosesPathOtherwise) {
  const Numbering flat = NumberSamples(ListingOf({"2.png", "1.png"}), {}).value();
  EXPECT_EQ(flat.order, Order::kPath);
  EXPECT_THAT(flat.objects, ElementsAre(1, 0));
  EXPECT_THAT(flat.classes, IsEmpty());
  EXPECT_THAT(flat.class_of, IsEmpty());
  const Numbering deep = NumberSamples(ListingOf({"x/2.npy", "x/1.npy"}, {"x"}), {}).value();
  EXPECT_EQ(deep.order, Order::kPath);
}

TEST(Numbering, ListKeepsTheOrderOfTheSource) {
  const Numbering n =
      NumberSamples(ListingOf({"c", "a", "b"}), {.order = Order::kList, .include = {}}).value();
  EXPECT_THAT(n.objects, ElementsAre(0, 1, 2));
}

TEST(Numbering, IncludeChoosesObjects) {
  const NumberingOptions options = {.order = Order::kPath,
                                    .include = GlobSet::Compile({"**/*.npy"}).value()};
  EXPECT_THAT(NumberSamples(ListingOf({"x/2.npy", "1.npy", "x/a.txt"}, {"x"}), options)->objects,
              ElementsAre(1, 0));
}

TEST(Numbering, SaysWhatToDoWhenThereIsNothing) {
  const Status empty = NumberSamples(ListingOf({}), {}).error();
  EXPECT_EQ(empty.code(), Code::kInvalidArgument);
  EXPECT_THAT(empty.message(), HasSubstr("check the address"));
  const NumberingOptions none_match = {.order = Order::kPath,
                                       .include = GlobSet::Compile({"*.npy"}).value()};
  EXPECT_THAT(NumberSamples(ListingOf({"a"}), none_match).error().message(),
              HasSubstr("check the include patterns"));
}

TEST(Numbering, RefusesAnObjectListedTwice) {
  EXPECT_THAT(NumberSamples(ListingOf({"a", "b", "a"}), {}).error().message(),
              HasSubstr("a is listed twice"));
}

}  // namespace
}  // namespace optcache::dataset
