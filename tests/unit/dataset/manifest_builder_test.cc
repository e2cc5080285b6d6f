#include "dataset/manifest_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::HasSubstr;

Status AddPath(std::string_view path) {
  ManifestBuilder builder(Order::kList, {});
  return builder.Add({.path = path});
}

TEST(ManifestBuilder, TakesPathsBelowTheSourceOnly) {
  for (const std::string_view path : {"a", "a/b", "..a/b..", "a b/c\xff", "a//b", ".hidden"}) {
    EXPECT_TRUE(AddPath(path).ok()) << path;
  }
  using namespace std::string_view_literals;
  for (const std::string_view path :
       {""sv, "/etc/passwd"sv, ".."sv, "a/../../b"sv, "./a"sv, "a/."sv, "a\0b"sv}) {
    EXPECT_EQ(AddPath(path).code(), Code::kInvalidArgument) << path;
  }
  EXPECT_TRUE(AddPath(std::string(kPathBytesMax, 'x')).ok());
  EXPECT_FALSE(AddPath(std::string(kPathBytesMax + 1, 'x')).ok());
}

TEST(ManifestBuilder, RefusesAClassThatDoesNotExist) {
  ManifestBuilder without(Order::kPath, {});
  EXPECT_EQ(without.Add({.path = "a", .class_index = 0}).code(), Code::kInvalidArgument);
  ManifestBuilder with(Order::kImageFolder, {"c"});
  EXPECT_EQ(with.Add({.path = "a", .class_index = 1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(with.Add({.path = "a"}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(with.Add({.path = "a", .class_index = 0}).ok());
}

TEST(ManifestBuilder, RefusesALongETagAndTooManyBytes) {
  ManifestBuilder builder(Order::kPath, {});
  EXPECT_THAT(builder.Add({.path = "x", .validator = {.etag = std::string(kETagBytesMax + 1, 'e')}})
                  .message(),
              HasSubstr("x: its ETag has 257 bytes"));
  EXPECT_THAT(
      builder.Add({.path = "x", .validator = {.etag = "\"e\"\r\nX-Injected: yes"}}).message(),
      HasSubstr("x: its ETag is none"));
  ASSERT_TRUE(builder.Add({.path = "y", .size = ~ByteCount{0}}).ok());
  EXPECT_EQ(builder.Add({.path = "z", .size = 1}).code(), Code::kInvalidArgument);
}

TEST(ManifestBuilder, NeedsASample) {
  EXPECT_EQ(ManifestBuilder(Order::kPath, {}).Finish().error().code(), Code::kInvalidArgument);
}

TEST(ManifestBuilder, AllSamplesHaveADigestOrNone) {
  ManifestBuilder builder(Order::kPath, {});
  ASSERT_TRUE(builder.Add({.path = "a", .digest = Sha256Of({})}).ok());
  ASSERT_TRUE(builder.Add({.path = "b"}).ok());
  EXPECT_THAT(std::move(builder).Finish().error().message(), HasSubstr("1 of 2"));
}

}  // namespace
}  // namespace optcache::dataset
