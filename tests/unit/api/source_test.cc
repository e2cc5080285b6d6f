#include "api/source.h"

#include <gtest/gtest.h>

namespace optcache::api {
namespace {

TEST(Source, HasAnAddress) {
  EXPECT_EQ(AddressOf(Source(FileSource{.path = "/data"})), "/data");
  EXPECT_EQ(AddressOf(Source(HttpSource{.base_url = "http://h/"})), "http://h/");
  EXPECT_EQ(AddressOf(Source(S3Source{.place = {.bucket = "b"}})), "s3://b/");
  EXPECT_EQ(AddressOf(Source(ClaimSource{.claim = "c"})), "");
}

TEST(Source, OfABucketHasARoleForPodsWithATokenAlone) {
  const S3Source source{.place = {.bucket = "b", .role_arn = "arn", .sts_endpoint = "http://s"}};
  EXPECT_EQ(AddressOf(source, "/token"),
            "s3://b/?role-arn=arn&sts-endpoint=http%3A//s&token-file=/token");
  EXPECT_EQ(AddressWithoutRole(source), "s3://b/");
}

}  // namespace
}  // namespace optcache::api
