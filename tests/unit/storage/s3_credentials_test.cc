#include "storage/s3_credentials.h"

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

S3Credentials KeysNow(S3CredentialSource& source) {
  S3CredentialsCallback unused = [](const Result<S3Credentials>&) { FAIL() << "nothing is late"; };
  return source.Get(unused).value().value();
}

TEST(S3Keys, AFolderHasAFileForEach) {
  const TempDir dir;
  dir.Write("accessKeyID", "AKIA\n");
  dir.Write("secretAccessKey", "secret\r\n");
  EXPECT_EQ(ReadS3Keys(dir.path())->credentials.access_key_id, "AKIA");
  EXPECT_EQ(ReadS3Keys(dir.path())->credentials.secret_access_key, "secret");
  EXPECT_EQ(ReadS3Keys(dir.path())->credentials.session_token, "");
  EXPECT_EQ(ReadS3Keys(dir.path())->ca_file, "");
  dir.Write("sessionToken", "token");
  dir.Write("ca.crt", "PEM");
  EXPECT_EQ(ReadS3Keys(dir.path())->credentials.session_token, "token");
  EXPECT_EQ(ReadS3Keys(dir.path())->ca_file, dir.Join("ca.crt"));
}

TEST(S3Keys, FilesMayHaveTheNamesOfVariables) {
  const TempDir dir;
  dir.Write("AWS_ACCESS_KEY_ID", "AKIA\n");
  dir.Write("AWS_SECRET_ACCESS_KEY", "secret");
  dir.Write("AWS_SESSION_TOKEN", "token");
  EXPECT_EQ(ReadS3Keys(dir.path())->credentials,
            (S3Credentials{
                .access_key_id = "AKIA", .secret_access_key = "secret", .session_token = "token"}));
}

TEST(S3Keys, ACustomersKeyIsOneOfTheFiles) {
  const std::string key = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
  const TempDir dir;
  dir.Write("sseCustomerKey", key + "\n");
  EXPECT_TRUE(ReadS3Keys(dir.path())->credentials.anonymous());
  EXPECT_EQ(ReadS3Keys(dir.path())->customer_key->key, key);
  const TempDir other;
  other.Write("accessKeyID", "AKIA");
  other.Write("secretAccessKey", "secret");
  EXPECT_FALSE(ReadS3Keys(other.path())->customer_key);
  other.Write("OPTCACHE_SSE_CUSTOMER_KEY", key);
  EXPECT_EQ(ReadS3Keys(other.path())->customer_key->key, key);
}

TEST(S3Keys, ACaAloneIsEnoughForAPublicBucket) {
  const TempDir dir;
  dir.Write("ca.crt", "PEM");
  EXPECT_TRUE(ReadS3Keys(dir.path())->credentials.anonymous());
}

TEST(S3Keys, WhatIsWrongIsASentenceWithoutTheKeys) {
  struct Case {
    std::map<std::string, std::string> files;
    std::string says;
  };
  for (const Case& c :
       {Case{{}, "there is no accessKeyID"}, Case{{{"accessKeyID", "s3cr3t"}}, "one is missing"},
        Case{{{"secretAccessKey", "s3cr3t"}}, "one is missing"},
        Case{{{"sessionToken", "s3cr3t"}, {"ca.crt", ""}}, "no accessKeyID"},
        Case{{{"accessKeyID", "s3cr3t\ntwo"}, {"secretAccessKey", "s3cr3t"}},
             "accessKeyID is empty, or not one line"},
        Case{{{"accessKeyID", "s3cr3t"}, {"secretAccessKey", ""}}, "secretAccessKey is empty"},
        Case{{{"sseCustomerKey", "s3cr3t"}}, "sseCustomerKey: it is not the base64 of 32 bytes"}}) {
    const TempDir dir;
    for (const auto& [name, content] : c.files)
      dir.Write(name, content);
    const auto keys = ReadS3Keys(dir.path());
    ASSERT_FALSE(keys) << c.says;
    EXPECT_EQ(keys.error().code(), Code::kPermissionDenied);
    EXPECT_THAT(keys.error().message(), HasSubstr(c.says));
    EXPECT_THAT(keys.error().message(), HasSubstr(dir.path()));
    EXPECT_THAT(keys.error().message(), Not(HasSubstr("s3cr3t")));
  }
}

TEST(S3KeyFolder, SeesChangesWithinASecond) {
  const TempDir dir;
  ManualClock clock;
  dir.Write("accessKeyID", "one");
  dir.Write("secretAccessKey", "1");
  S3KeyFolder folder(dir.path(), clock);
  EXPECT_EQ(KeysNow(folder).access_key_id, "one");
  dir.Write("accessKeyID", "two");
  EXPECT_EQ(KeysNow(folder).access_key_id, "one");
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(KeysNow(folder).access_key_id, "two");
}

// As the kubelet does it: NAME -> ..data/NAME, ..data -> a folder that is never changed.
TEST(S3KeyFolder, TakesKeysThatBelongTogether) {
  namespace fs = std::filesystem;
  const TempDir dir;
  dir.Write("..first/accessKeyID", "one");
  dir.Write("..first/secretAccessKey", "1");
  fs::create_symlink("..first", dir.Join("..data"));
  fs::create_symlink("..data/accessKeyID", dir.Join("accessKeyID"));
  // A path that still leads to the old folder: the file by its name is not what counts.
  fs::create_symlink("..first/secretAccessKey", dir.Join("secretAccessKey"));
  ManualClock clock;
  S3KeyFolder folder(dir.path(), clock);
  dir.Write("..second/accessKeyID", "two");
  dir.Write("..second/secretAccessKey", "2");
  fs::create_symlink("..second", dir.Join("..data_tmp"));
  fs::rename(dir.Join("..data_tmp"), dir.Join("..data"));
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(KeysNow(folder),
            (S3Credentials{.access_key_id = "two", .secret_access_key = "2", .session_token = ""}));
}

TEST(S3Environment, HasAmazonsVariables) {
  std::map<std::string, std::string> variables;
  const Environment environment = [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  EXPECT_TRUE(CredentialsOfEnvironment(environment)->anonymous());
  variables["AWS_ACCESS_KEY_ID"] = "AKIA";
  EXPECT_EQ(CredentialsOfEnvironment(environment).error().code(), Code::kInvalidArgument);
  variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables["AWS_SESSION_TOKEN"] = "token";
  EXPECT_EQ(CredentialsOfEnvironment(environment).value(),
            (S3Credentials{
                .access_key_id = "AKIA", .secret_access_key = "secret", .session_token = "token"}));
  EXPECT_EQ(CustomerKeyOfEnvironment(environment).value(), std::nullopt);
  variables["OPTCACHE_SSE_CUSTOMER_KEY"] = "c2hvcnQ=";
  EXPECT_EQ(CustomerKeyOfEnvironment(environment).error().code(), Code::kInvalidArgument);
  EXPECT_THAT(CustomerKeyOfEnvironment(environment).error().message(),
              HasSubstr("OPTCACHE_SSE_CUSTOMER_KEY: it is not the base64 of 32 bytes"));
  variables["OPTCACHE_SSE_CUSTOMER_KEY"] = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
  EXPECT_TRUE(CustomerKeyOfEnvironment(environment).value());
  EXPECT_EQ(KeysNow(*FixedCredentials({.access_key_id = "a"})).access_key_id, "a");
}

}  // namespace
}  // namespace optcache::storage
