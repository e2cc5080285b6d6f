#include "dataset/tar_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::HasSubstr;

TEST(SplitTarName, CutsAtTheFirstDotOfTheFileName) {
  EXPECT_EQ(SplitTarName("a.jpg"), (TarName{"a", "jpg"}));
  EXPECT_EQ(SplitTarName("d.x/a.seg.png"), (TarName{"d.x/a", "seg.png"}));
  EXPECT_EQ(SplitTarName("./a."), (TarName{"./a", ""}));
  EXPECT_EQ(SplitTarName("a"), std::nullopt);
  EXPECT_EQ(SplitTarName("d.x/a"), std::nullopt);
}

TEST(SplitTarName, TakesTheFolderForAHiddenFile) {
  EXPECT_EQ(SplitTarName(".h"), std::nullopt);
  EXPECT_EQ(SplitTarName("./.h"), std::nullopt);
  EXPECT_EQ(SplitTarName("d/.h"), (TarName{"d/", "h"}));
  EXPECT_EQ(SplitTarName("c.x/d/.h"), (TarName{"c.x/d/", "h"}));
  EXPECT_EQ(SplitTarName("c/d.x/.h"), std::nullopt);
  EXPECT_EQ(SplitTarName("/.h"), (TarName{"/", "h"}));
}

TEST(IsTarMeta, IsWhatWebdatasetSkips) {
  EXPECT_TRUE(IsTarMeta("__meta__"));
  EXPECT_TRUE(IsTarMeta("__meta__/a.jpg"));
  EXPECT_TRUE(IsTarMeta("____"));
  EXPECT_FALSE(IsTarMeta("___"));
  EXPECT_FALSE(IsTarMeta("__meta__.json"));
  EXPECT_FALSE(IsTarMeta("a/__meta__/b.jpg"));
}

TEST(TarGrouper, JoinsMembersOfOneKeyThatFollowOneAnother) {
  TarGrouper grouper;
  for (const char* name :
       {"a.jpg", "no-ending", "a.CLS", "b.jpg", "__meta__/x.json", "b.json", "a.txt"}) {
    ASSERT_TRUE(grouper.Add({.name = name, .offset = 512, .size = 7}).ok()) << name;
  }
  const std::vector<TarGroup> groups = std::move(grouper).Finish();
  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(groups[0].key, "a");
  EXPECT_EQ(groups[0].members, (std::vector<Member>{{.name = "jpg", .offset = 512, .size = 7},
                                                    {.name = "cls", .offset = 512, .size = 7}}));
  EXPECT_EQ(groups[1].key, "b");
  EXPECT_EQ(groups[1].members.size(), 2);
  EXPECT_EQ(groups[2].key, "a");
}

TEST(TarGrouper, RefusesWhatWouldHideAMember) {
  TarGrouper grouper;
  ASSERT_TRUE(grouper.Add({.name = "a.jpg", .offset = 512, .size = 7}).ok());
  const Status twice = grouper.Add({.name = "a.JPG", .offset = 2048, .size = 7});
  EXPECT_EQ(twice.code(), Code::kInvalidArgument);
  EXPECT_THAT(twice.message(), HasSubstr("a.JPG is the second of sample a that ends with .jpg"));
  EXPECT_EQ(grouper.Add({.name = "a.__key__", .offset = 0, .size = 0}).code(),
            Code::kInvalidArgument);
}

TEST(TarGrouper, BoundsTheMembersOfASample) {
  TarGrouper grouper;
  for (std::uint32_t i = 0; i < kMembersMax; ++i)
    ASSERT_TRUE(grouper.Add({.name = "a." + std::to_string(i), .offset = 0, .size = 0}).ok());
  EXPECT_EQ(grouper.Add({.name = "a.last", .offset = 0, .size = 0}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::dataset
