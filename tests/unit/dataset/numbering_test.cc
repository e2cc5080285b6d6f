#include "dataset/numbering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Numbering, ChoosesImageFolderWhereImagesLieInFolders) {
  const Numbering n = NumberSamples({"b/1.png", "a/1.png", "top.png"}, {"a", "b"}, {}).value();
  EXPECT_EQ(n.order, Order::kImageFolder);
  EXPECT_THAT(n.objects, ElementsAre(1, 0));
  EXPECT_THAT(n.classes, ElementsAre("a", "b"));
  EXPECT_THAT(n.class_of, ElementsAre(0, 1));
}

TEST(Numbering, ChoosesPathOtherwise) {
  const Numbering flat = NumberSamples({"2.png", "1.png"}, {}, {}).value();
  EXPECT_EQ(flat.order, Order::kPath);
  EXPECT_THAT(flat.objects, ElementsAre(1, 0));
  EXPECT_THAT(flat.classes, IsEmpty());
  EXPECT_THAT(flat.class_of, IsEmpty());
  const Numbering deep = NumberSamples({"x/2.npy", "x/1.npy"}, {"x"}, {}).value();
  EXPECT_EQ(deep.order, Order::kPath);
}

TEST(Numbering, SaysWhichOrderItChooses) {
  EXPECT_EQ(ChosenOrder({"a/1.png", "b"}, {}), Order::kImageFolder);
  EXPECT_EQ(ChosenOrder({"1.png", "a/b"}, {}), Order::kPath);
  EXPECT_EQ(ChosenOrder({"a/1.png"}, {.order = Order::kList, .include = {}}), Order::kList);
}

TEST(Numbering, ListKeepsTheOrderOfTheSource) {
  const Numbering n =
      NumberSamples({"c", "a", "b"}, {}, {.order = Order::kList, .include = {}}).value();
  EXPECT_THAT(n.objects, ElementsAre(0, 1, 2));
}

TEST(Numbering, IncludeChoosesObjects) {
  const NumberingOptions options = {.order = Order::kPath,
                                    .include = GlobSet::Compile({"**/*.npy"}).value()};
  EXPECT_THAT(NumberSamples({"x/2.npy", "1.npy", "x/a.txt"}, {"x"}, options)->objects,
              ElementsAre(1, 0));
}

TEST(Numbering, SaysWhatToDoWhenThereIsNothing) {
  const Status empty = NumberSamples({}, {}, {}).error();
  EXPECT_EQ(empty.code(), Code::kInvalidArgument);
  EXPECT_THAT(empty.message(), HasSubstr("check the address"));
  const NumberingOptions none_match = {.order = Order::kPath,
                                       .include = GlobSet::Compile({"*.npy"}).value()};
  EXPECT_THAT(NumberSamples({"a"}, {}, none_match).error().message(),
              HasSubstr("check the include patterns"));
}

TEST(Numbering, RefusesAnObjectListedTwice) {
  EXPECT_THAT(NumberSamples({"a", "b", "a"}, {}, {}).error().message(),
              HasSubstr("a is listed twice"));
}

}  // namespace
}  // namespace optcache::dataset
