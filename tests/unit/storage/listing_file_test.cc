#include "storage/listing_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ListingFile, TakesPathsSizesAndETags) {
  const ObjectListing listing =
      ParseListing("b/x y.jpg\t12\t\"tag\"\r\n\n./a/2.jpg\t0\nc\n", "index.txt").value();
  ASSERT_EQ(listing.objects.size(), 3U);
  EXPECT_EQ(listing.objects[0].path, "b/x y.jpg");
  EXPECT_EQ(listing.objects[0].info->size, 12U);
  EXPECT_EQ(listing.objects[0].info->validator.etag, "\"tag\"");
  EXPECT_EQ(listing.objects[1].path, "a/2.jpg");
  EXPECT_EQ(listing.objects[1].info->size, 0U);
  EXPECT_EQ(listing.objects[2].path, "c");
  EXPECT_FALSE(listing.objects[2].info.has_value());
  EXPECT_THAT(listing.top_folders, ElementsAre("a", "b"));
}

TEST(ListingFile, TakesWeakETagsAndNone) {
  const ObjectListing listing = ParseListing("a\t1\tW/\"\xc3\xa4\"\nb\t1\t\n", "index.txt").value();
  EXPECT_EQ(listing.objects[0].info->validator.etag, "W/\"\xc3\xa4\"");
  EXPECT_FALSE(listing.objects[1].info->validator.known());
}

TEST(ListingFile, LeavesItselfOut) {
  EXPECT_EQ(ParseListing("./index.txt\na\n", "index.txt")->objects.size(), 1U);
}

TEST(ListingFile, AByteOrderMarkIsNoPartOfTheFirstName) {
  EXPECT_EQ(ParseListing("\xef\xbb\xbf"
                         "a\nb\n",
                         "index.txt")
                ->objects[0]
                .path,
            "a");
}

TEST(ListingFile, ErrorsQuoteLittleAndNoControlCharacters) {
  const std::string field = "\x1b[2J" + std::string(1'000'000, 'x');
  const std::string quoted = "\\u001b[2J" + std::string(96, 'x');
  EXPECT_EQ(ParseListing("a\t" + field, "index.txt").error().message(),
            "line 1: \"" + quoted + "\" is not a size in bytes");
  EXPECT_THAT(ParseListing("a\t1\t" + field, "index.txt").error().message(),
              StartsWith("line 1: " + quoted + " is not an ETag"));
}

TEST(ListingFile, ErrorsNameTheLine) {
  struct Case {
    std::string text;
    std::string_view says;
  };
  const std::string long_etag = '"' + std::string(255, 'e') + '"';
  for (const Case& c :
       {Case{"a\n/etc/passwd\n", "line 2: object path"},
        Case{"a\n\n\t1\n", "line 3: it begins with a tab"},
        Case{"a\t-1\n", "line 1: \"-1\" is not a size"},
        Case{"a\t99999999999999999999\n", "is not a size"}, Case{"a\t1x\n", "is not a size"},
        Case{"a\t1\te\tf\n", "three fields"},
        Case{"a\t1\t\"e\"\nb\t1\t0cc175b9c0f1b6a8\n", "line 2: 0cc175b9c0f1b6a8 is not an ETag"},
        Case{"a\nb\t1\t" + long_etag, "line 2: its ETag has 257 bytes; the limit is 256"},
        Case{"a\t1\t\"\n", "is not an ETag"}, Case{"a\t1\tw/\"e\"\n", "is not an ETag"},
        Case{"a\t1\t\"e\r\"\n", "is not an ETag"}, Case{"a\t1\t\"e\"f\"\n", "is not an ETag"}}) {
    const auto listing = ParseListing(c.text, "index.txt");
    ASSERT_FALSE(listing.has_value()) << c.text;
    EXPECT_EQ(listing.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(listing.error().message(), HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace optcache::storage
