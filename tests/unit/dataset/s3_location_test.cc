#include "dataset/s3_location.h"

#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

TEST(S3Location, ABucketAloneHasAShortAddress) {
  EXPECT_EQ(AddressOf({.bucket = "images"}), "s3://images/");
  EXPECT_EQ(AddressOf({.bucket = "images", .prefix = "train/"}), "s3://images/train/");
}

TEST(S3Location, AllOfItIsInTheAddress) {
  EXPECT_EQ(AddressOf({.bucket = "images",
                       .prefix = "a b?/é%",
                       .endpoint = "https://minio:9000",
                       .region = "eu-west-1",
                       .style = "path",
                       .requester_pays = true,
                       .listing = "lists/a b.txt",
                       .role_arn = "arn:aws:iam::1:role/a&b",
                       .sts_endpoint = "http://sts",
                       .token_file = "/var/run/token"}),
            "s3://images/a%20b%3F/%C3%A9%25?endpoint=https%3A//minio%3A9000&region=eu-west-1"
            "&style=path&requester-pays=true&listing=lists/a%20b.txt"
            "&role-arn=arn%3Aaws%3Aiam%3A%3A1%3Arole/a%26b"
            "&sts-endpoint=http%3A//sts&token-file=/var/run/token");
}

}  // namespace
}  // namespace optcache::dataset
