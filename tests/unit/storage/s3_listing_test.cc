#include "storage/s3_listing.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string PageXml(const std::string& content) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>" +
         content + "</ListBucketResult>";
}

std::string Contents(const std::string& key, const std::string& size = "1") {
  return fmt::format(
      "<Contents><Key>{}</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"
      "<ETag>&quot;e1&quot;</ETag><Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
      key, size);
}

TEST(S3Listing, ReadsAPage) {
  const S3Page page = ParseS3Page(PageXml("<IsTruncated>true</IsTruncated>" +
                                          Contents("a b", "434234") + Contents("b&amp;c") +
                                          "<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes>"))
                          .value();
  EXPECT_THAT(page.keys, ElementsAre(S3Key{.key = "a b", .size = 434234, .etag = "\"e1\""},
                                     S3Key{.key = "b&c", .size = 1, .etag = "\"e1\""}));
  EXPECT_THAT(page.common_prefixes, ElementsAre("c/"));
  EXPECT_TRUE(page.truncated);
  EXPECT_EQ(page.last(), "c/");
}

TEST(S3Listing, AnEmptyBucketIsAPage) {
  const S3Page page = ParseS3Page(PageXml("<IsTruncated>false</IsTruncated>")).value();
  EXPECT_TRUE(page.keys.empty());
  EXPECT_FALSE(page.truncated);
  EXPECT_EQ(page.last(), "");
}

TEST(S3Listing, AnEmptyPageIsContinuedByItsToken) {
  const std::string token =
      "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>a+b/c%3D=</NextContinuationToken>";
  const S3Page page = ParseS3Page(PageXml(token)).value();
  EXPECT_TRUE(page.truncated);
  EXPECT_TRUE(page.keys.empty());
  EXPECT_EQ(page.next_token, "a+b/c%3D=") << "it is not encoded as keys are";
  EXPECT_EQ(ParseS3Page(PageXml(token + Contents("a")))->next_token, "") << "a key says more";
  EXPECT_EQ(ParseS3Page(PageXml("<NextContinuationToken>a</NextContinuationToken>"))->next_token,
            "");
}

TEST(S3Listing, DecodesKeysWhereThePageSaysSo) {
  const std::string encoded = Contents("a+b%2Bc%25%3F/%C3%A9%0A");
  EXPECT_EQ(ParseS3Page(PageXml("<EncodingType>url</EncodingType>" + encoded))->keys[0].key,
            "a b+c%?/é\n");
  EXPECT_EQ(ParseS3Page(PageXml(encoded))->keys[0].key, "a+b%2Bc%25%3F/%C3%A9%0A");
}

TEST(S3Listing, KeepsBlanks) {
  EXPECT_EQ(ParseS3Page(PageXml(Contents(" ")))->keys[0].key, " ");
  EXPECT_EQ(ParseS3Page(PageXml(Contents(" a ")))->keys[0].key, " a ");
}

TEST(S3Listing, ETagsGetTheirQuotes) {
  const std::string content =
      "<Contents><Key>a</Key><Size>0</Size><ETag>e1</ETag></Contents>"
      "<Contents><Key>b</Key><Size>0</Size></Contents>";
  const S3Page page = ParseS3Page(PageXml(content)).value();
  EXPECT_EQ(page.keys[0].etag, "\"e1\"");
  EXPECT_EQ(page.keys[1].etag, "");
}

TEST(S3Listing, RefusesWhatIsNoPage) {
  const std::string url = "<EncodingType>url</EncodingType>";
  for (const std::string& text :
       {std::string(), std::string("<html><body>hello</body></html>"),
        std::string("<ListBucketResult><Contents>"), PageXml(Contents("a", "")),
        PageXml(Contents("a", "-1")), PageXml(Contents("a", "99999999999999999999")),
        PageXml(Contents("")), PageXml(Contents(std::string(1025, 'a'))),
        PageXml(Contents("b") + Contents("a")), PageXml(Contents("a") + Contents("a")),
        PageXml("<EncodingType>rot13</EncodingType>"), PageXml(url + Contents("a%2")),
        PageXml("<IsTruncated>true</IsTruncated>"),
        PageXml("<IsTruncated>true</IsTruncated><NextContinuationToken>" +
                std::string(kS3TokenBytesMax + 1, 't') + "</NextContinuationToken>")}) {
    const auto page = ParseS3Page(text);
    ASSERT_FALSE(page) << text;
    EXPECT_EQ(page.error().code(), Code::kDataLoss);
    EXPECT_THAT(page.error().message(), HasSubstr("no listing of a bucket"));
  }
}

// Ten entities, each of ten of the one before: a parser that replaces them needs gigabytes.
TEST(S3Listing, EntitiesAreNotReplaced) {
  std::string entities = "<!ENTITY e0 \"lol\">";
  for (int level = 1; level < 10; ++level) {
    std::string ten;
    for (int i = 0; i < 10; ++i)
      ten += fmt::format("&e{};", level - 1);
    entities += fmt::format("<!ENTITY e{} \"{}\">", level, ten);
  }
  const std::string bomb = "<?xml version=\"1.0\"?><!DOCTYPE ListBucketResult [" + entities +
                           "]><ListBucketResult>" + Contents("&e9;") + "</ListBucketResult>";
  const auto page = ParseS3Page(bomb);
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->keys.at(0).key, "&e9;");
}

TEST(S3Listing, DeepNestingIsNoTrouble) {
  constexpr int kDeep = 100'000;
  std::string open;
  std::string close;
  for (int i = 0; i < kDeep; ++i) {
    open += "<a>";
    close += "</a>";
  }
  EXPECT_TRUE(ParseS3Page(PageXml(open + close))->keys.empty());
  EXPECT_FALSE(ParseS3Page(PageXml(open)));
  EXPECT_FALSE(ParseS3Page(open + close));
}

// 16 MiB of them are hundreds of MiB once they are parsed.
TEST(S3Listing, APageOfTagsAloneIsRefused) {
  std::string tags;
  for (size_t i = 0; i < kS3PageTagsMax; ++i)
    tags += "<a/>";
  const auto page = ParseS3Page(PageXml(tags));
  EXPECT_EQ(page.error().code(), Code::kDataLoss);
  EXPECT_THAT(page.error().message(), HasSubstr("too many tags"));
}

TEST(S3Listing, AKeyOfMegabytesIsRefused) {
  const auto page = ParseS3Page(PageXml(Contents(std::string(8 << 20, 'k'))));
  EXPECT_EQ(page.error().code(), Code::kDataLoss);
  EXPECT_THAT(page.error().message(), HasSubstr("a key of 8388608 bytes"));
}

TEST(S3Listing, KeysOf1024BytesAreKeys) {
  const std::string key(1024, 'k');
  EXPECT_EQ(ParseS3Page(PageXml(Contents(key)))->keys[0].key, key);
}

TEST(S3Listing, TheLongestPageOfS3IsAPage) {
  std::string keys;
  for (int i = 0; i < 1000; ++i) {
    std::string key;
    for (int byte = 0; byte < 1020; ++byte)
      key += "%C3";
    keys += Contents(fmt::format("{:04}{}", i, key));
  }
  const auto page = ParseS3Page(PageXml("<EncodingType>url</EncodingType>" + keys));
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->keys.size(), 1000U);
}

TEST(S3Listing, APageHasALimit) {
  std::string keys;
  for (size_t i = 0; i <= kS3KeysPerPageMax; ++i)
    keys += Contents(fmt::format("{:06}", i));
  EXPECT_THAT(ParseS3Page(PageXml(keys)).error().message(), HasSubstr("too many keys"));
}

}  // namespace
}  // namespace optcache::storage
