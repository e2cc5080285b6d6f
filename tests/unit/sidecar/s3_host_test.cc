#include "sidecar/s3/s3_host.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

std::string BucketOf(const std::string& host) {
  const auto bucket = BucketOfHost({{"host", host}});
  EXPECT_TRUE(bucket.has_value()) << host << ": " << bucket.error().message;
  return bucket.value_or("refused");
}

TEST(S3Host, OfTheLoopbackIsPathStyle) {
  for (const char* const host :
       {"localhost", "localhost:4104", "LocalHost:4104", "localhost:", "127.0.0.1",
        "127.0.0.1:4104", "127.255.255.254:1", "[::1]", "[::1]:65535"})
    EXPECT_EQ(BucketOf(host), "") << host;
}

TEST(S3Host, BelowLocalhostIsABucket) {
  EXPECT_EQ(BucketOf("images.localhost:4104"), "images");
  EXPECT_EQ(BucketOf("my.images.LOCALHOST"), "my.images");
}

// A page of such a name reads the endpoint if its name leads to the loopback.
TEST(S3Host, OfAnyOtherNameIsRefusedWithTheReason) {
  for (const char* const host : {"evil.example",
                                 "evil.example:4104",
                                 "localhost.evil.example",
                                 "127.0.0.1.evil.example",
                                 "evillocalhost",
                                 ".localhost",
                                 "127.0.0.1.2",
                                 "127.0.0",
                                 "127.0.0.256",
                                 "127..0.1",
                                 "127.0.0.0001",
                                 "128.0.0.1",
                                 "0.0.0.0",
                                 "10.0.0.1",
                                 "[::2]",
                                 "[::]",
                                 "::1",
                                 "[::ffff:127.0.0.1]",
                                 "localhost:port",
                                 "localhost:65536",
                                 "localhost:123456",
                                 "localhost:1:2",
                                 "localhost@evil.example",
                                 "localhost/evil",
                                 "localhost evil",
                                 ""}) {
    const auto bucket = BucketOfHost({{"Host", host}});
    ASSERT_FALSE(bucket.has_value()) << host;
    EXPECT_EQ(bucket.error().status, 403) << host;
    EXPECT_EQ(bucket.error().code, "AccessDenied");
    EXPECT_NE(bucket.error().message.find("names of the loopback"), std::string::npos);
  }
}

TEST(S3Host, IsShownInAnErrorAsFarAsItIsText) {
  const auto bucket = BucketOfHost({{"Host", "\xff\x01" + std::string(10'000, 'x')}});
  ASSERT_FALSE(bucket.has_value());
  EXPECT_LT(bucket.error().message.size(), 500U);
  EXPECT_NE(bucket.error().message.find("\\xff\\u0001xx"), std::string::npos);
}

TEST(S3Host, IsNotForPagesOfOtherSites) {
  const auto asked_from = [](const std::string& site) {
    return BucketOfHost({{"Host", "localhost:4104"}, {"sec-fetch-site", site}});
  };
  ASSERT_FALSE(asked_from("cross-site").has_value());
  EXPECT_EQ(asked_from("cross-site").error().code, "AccessDenied");
  for (const char* const site : {"none", "same-origin", "same-site"})
    EXPECT_TRUE(asked_from(site).has_value()) << site << ": a person, or a page of the loopback";
}

TEST(S3Host, IsThereOnce) {
  EXPECT_EQ(BucketOfHost({}).error().status, 400);
  const net::HttpHeaders two = {{"Host", "localhost"}, {"host", "evil.example"}};
  EXPECT_EQ(BucketOfHost(two).error().status, 400);
}

}  // namespace
}  // namespace optcache::sidecar
