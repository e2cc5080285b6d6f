#include "storage/s3_temporary_keys.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(S3TemporaryKeys, TimesAreUtc) {
  EXPECT_EQ(ParseUtcTime("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(ParseUtcTime("2023-11-14T22:13:20Z"), 1.7e9);
  EXPECT_EQ(ParseUtcTime("2023-11-14T22:13:20.123456Z"), 1.7e9);
  for (const std::string text :
       {"", "2023-11-14", "2023-11-14T22:13:20", "2023-11-14T22:13:20+00:00",
        "2023-13-14T22:13:20Z", "2023-02-30T22:13:20Z", "2023-11-14T24:13:20Z",
        "2023-11-14T22:13:20Zz", "+023-11-14T22:13:20Z"})
    EXPECT_EQ(ParseUtcTime(text).error().code(), Code::kDataLoss) << text;
}

TEST(S3TemporaryKeys, AreReadFromJson) {
  const auto keys = ParseKeyAnswer(
      R"({"Code": "Success", "AccessKeyId": "ASIA", "SecretAccessKey": "secret", "Token": "token",
          "Expiration": "2023-11-14T22:13:20Z", "AccountId": "123456789012"})");
  EXPECT_EQ(keys->credentials,
            (S3Credentials{
                .access_key_id = "ASIA", .secret_access_key = "secret", .session_token = "token"}));
  EXPECT_EQ(keys->expires_unix_s, 1.7e9);
  EXPECT_TRUE(ParseKeyAnswer(R"({"AccessKeyId": "AKIA", "SecretAccessKey": "secret",
                                 "Expiration": "2023-11-14T22:13:20Z"})")
                  ->credentials.session_token.empty());
}

TEST(S3TemporaryKeys, WhatIsNoneIsRefusedWithoutItsContent) {
  for (
      const std::string text :
      {"", "[]", "null", "s3cr3t", R"({"AccessKeyId": "s3cr3t"})",
       R"({"AccessKeyId": "a", "SecretAccessKey": "s3cr3t"})",
       R"({"AccessKeyId": "a", "SecretAccessKey": "s3cr3t\nb", "Expiration": "2023-11-14T22:13:20Z"})",
       R"({"AccessKeyId": "a", "SecretAccessKey": "s3cr3t", "Token": "s3 cr3t", "Expiration": "2023-11-14T22:13:20Z"})",
       R"({"AccessKeyId": 1, "SecretAccessKey": "s3cr3t", "Expiration": "2023-11-14T22:13:20Z"})",
       R"({"AccessKeyId": "a", "SecretAccessKey": "s3cr3t", "Expiration": "s3cr3t"})"}) {
    const auto keys = ParseKeyAnswer(text);
    EXPECT_EQ(keys.error().code(), Code::kDataLoss) << text;
    EXPECT_THAT(keys.error().message(), Not(HasSubstr("s3cr3t")));
  }
  EXPECT_EQ(ParseKeyAnswer(std::string(300 << 10U, ' ')).error().code(), Code::kDataLoss);
}

TEST(S3TemporaryKeys, AnotherCodeThanSuccessIsARefusal) {
  const auto refused = ParseKeyAnswer(R"({"Code": "AssumeRoleUnauthorizedAccess"})");
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.error().message(), HasSubstr("AssumeRoleUnauthorizedAccess"));
}

}  // namespace
}  // namespace optcache::storage
