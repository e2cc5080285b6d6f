#include "storage/key_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<ObjectListing> Parse(std::string_view text, std::string prefix = "") {
  KeyList keys(std::move(prefix), "train/list.txt");
  RETURN_IF_ERROR(AddKeysOfText(text, keys));
  return std::move(keys).Take();
}

TEST(KeyList, TakesWhatLiesBelowThePrefix) {
  const auto listing = Parse(
      "train/b/2.jpg\t12\t\"e\"\r\n\ntrain/a 1.jpg\t0\ntrain2/c.jpg\t1\nval/d.jpg\t1\n", "train/");
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 2U);
  EXPECT_EQ(listing->objects[0].path, "b/2.jpg");
  EXPECT_EQ(listing->objects[0].info->size, 12U);
  EXPECT_EQ(listing->objects[0].info->validator.etag, "\"e\"");
  EXPECT_EQ(listing->objects[1].path, "a 1.jpg");
  EXPECT_EQ(listing->objects[1].info->size, 0U);
  EXPECT_FALSE(listing->objects[1].info->validator.known());
  EXPECT_THAT(listing->top_folders, ElementsAre("b"));
}

TEST(KeyList, AByteOrderMarkIsNoPartOfTheFirstKey) {
  const auto listing = Parse("\xef\xbb\xbftrain/a\t1\ntrain/b\t2\n", "train/");
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 2U);
  EXPECT_EQ(listing->objects[0].path, "a");
}

TEST(KeyList, LeavesFoldersAndItselfOut) {
  const auto listing =
      Parse("train/\t0\ntrain/empty/\t0\ntrain/list.txt\t9\ntrain/a\t1\n", "train/");
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 1U);
  EXPECT_THAT(listing->top_folders, ElementsAre("empty"));
}

TEST(KeyList, KeepsKeysThatNoPathCanBeApart) {
  const auto listing = Parse("b/../c\t1\n/a\t1\nd\t1\n");
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->objects.size(), 1U);
  EXPECT_THAT(listing->unfit_keys, ElementsAre("/a", "b/../c"));
  EXPECT_TRUE(listing->top_folders.empty());
}

TEST(KeyList, TakesAnotherListBehindItsOwn) {
  KeyList keys("train/");
  KeyList other("train/");
  ASSERT_TRUE(keys.Add("train/b/2", std::nullopt).ok());
  ASSERT_TRUE(other.Add("train/a/1", std::nullopt).ok());
  ASSERT_TRUE(other.Add("train/../x", std::nullopt).ok());
  keys.Merge(std::move(other));
  EXPECT_EQ(keys.size(), 2U);
  const ObjectListing listing = std::move(keys).Take();
  EXPECT_EQ(listing.objects[1].path, "a/1");
  EXPECT_THAT(listing.top_folders, ElementsAre("a", "b"));
  EXPECT_THAT(listing.unfit_keys, ElementsAre("../x"));
}

TEST(KeyList, ErrorsNameTheLine) {
  const auto says = [](const std::string& text) {
    const auto listing = Parse(text);
    EXPECT_EQ(listing.error().code(), Code::kInvalidArgument);
    return listing.error().message();
  };
  EXPECT_THAT(says("a\t1\nNone\n"), HasSubstr("line 2: the size is missing"));
  EXPECT_THAT(says("a\tb\n"), HasSubstr("line 1: \"b\" is not a size"));
  EXPECT_THAT(says(std::string(1025, 'k') + "\t1\n"),
              HasSubstr("line 1: the key has 1025 bytes, and a key has 1 to 1024"));
}

}  // namespace
}  // namespace optcache::storage
