#include "dataset/members.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

// Byte by byte what docs/formats/members.md says.
TEST(Members, HeadIsAsTheFormatSays) {
  const std::vector<Member> members = {{.name = "jpg", .offset = 512, .size = 0x0102},
                                       {.name = "cls", .offset = 2048, .size = 1}};
  const std::string expected =
      std::string("OMB1", 4) + std::string("\2\0\0\0", 4) + std::string("\6\0\0\0", 4) +
      std::string("\70\0\0\0", 4) + std::string("\2\1\0\0\0\0\0\0", 8) +
      std::string("\1\0\0\0\0\0\0\0", 8) + std::string("\3\0\0\0", 4) + std::string("\3\0\0\0", 4) +
      "a/0001" + "jpg" + "cls" + std::string(4, '\0');
  EXPECT_EQ(MembersHead("a/0001", members), expected);
  EXPECT_EQ(MembersSize("a/0001", members).value(), 56 + 264 + 8);
}

TEST(Members, PaddingFillsUpToEight) {
  EXPECT_EQ(MemberPadding(0), 0);
  EXPECT_EQ(MemberPadding(1), 7);
  EXPECT_EQ(MemberPadding(8), 0);
}

TEST(Members, SizesThatCannotBeAreRefused) {
  const Member huge = {.name = "a", .offset = 0, .size = ~ByteCount{0} - 9};
  EXPECT_EQ(MembersSize("k", {huge, huge}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(MembersSize("k", {{.name = "a", .offset = 0, .size = ~ByteCount{0}}}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(MembersSize("k", {}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(MembersSize("k", std::vector<Member>(kMembersMax + 1)).error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::dataset
