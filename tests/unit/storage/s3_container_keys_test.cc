#include "storage/s3_container_keys.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/key_sources.h"
#include "support/scripted_http_server.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kContainerAnswer =
    R"({"AccessKeyId": "ASIA1", "SecretAccessKey": "secret", "Token": "token",
        "Expiration": "2023-11-14T23:13:20Z"})";

TEST(S3ContainerKeys, AreAskedForWithTheTokenOfTheFile) {
  const TempDir dir;
  dir.Write("token", "first.jwt\n");
  ScriptedHttpServer server;
  ClockOnTheWall clock;
  S3ContainerKeys keys(
      **ContainerKeysOf(
          EnvironmentOf({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/v1/credentials"},
                         {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", dir.Join("token")}})),
      clock);
  server.AnswerNext("v1/credentials", {.body = kContainerAnswer});
  EXPECT_EQ(KeysOf(keys).first.value(), (S3Credentials{.access_key_id = "ASIA1",
                                                       .secret_access_key = "secret",
                                                       .session_token = "token"}));
  EXPECT_TRUE(KeysOf(keys).second) << "they are kept";
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].method, "GET");
  EXPECT_EQ(server.requests()[0].headers.at("authorization"), "first.jwt");

  dir.Write("token", "second.jwt");
  clock.Pass(3600);
  server.AnswerNext("v1/credentials", {.status = 503});
  EXPECT_EQ(KeysOf(keys).first.error().code(), Code::kUnavailable);
  EXPECT_EQ(server.requests()[1].headers.at("authorization"), "second.jwt");
}

TEST(S3ContainerKeys, RefusalsSayWhereAndNotWhat) {
  ScriptedHttpServer server;
  ClockOnTheWall clock;
  S3ContainerKeys keys(
      **ContainerKeysOf(EnvironmentOf({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/c"},
                                       {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic s3cr3t"}})),
      clock);
  server.AnswerNext("c", {.status = 403, .body = "s3cr3t"});
  const auto refused = KeysOf(keys).first;
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.error().message(), HasSubstr(server.url() + "/c: HTTP 403"));
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("s3cr3t")));
  EXPECT_EQ(server.requests()[0].headers.at("authorization"), "Basic s3cr3t");
  server.AnswerNext("c", {.body = "<html/>"});
  EXPECT_EQ(KeysOf(keys).first.error().code(), Code::kDataLoss);
  // Whoever answers with another place gets no token there.
  server.AnswerNext("c", {.status = 302, .headers = {"Location: " + server.url() + "/d"}});
  EXPECT_EQ(KeysOf(keys).first.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST(S3ContainerKeys, ATokenThatCannotBeReadIsSaid) {
  const TempDir dir;
  dir.Write("token", "two words");
  ClockOnTheWall clock;
  S3ContainerKeys keys({.url = "http://127.0.0.1:1/", .token = "", .token_file = dir.Join("token")},
                       clock);
  const auto unreadable = KeysOf(keys).first;
  EXPECT_EQ(unreadable.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(unreadable.error().message(), HasSubstr(dir.Join("token")));
  EXPECT_THAT(unreadable.error().message(), Not(HasSubstr("two words")));
}

TEST(S3ContainerKeys, HttpIsForThisMachineAlone) {
  const auto url_of = [](const std::string& full) {
    return ContainerKeysOf(EnvironmentOf({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", full}}));
  };
  for (const std::string url :
       {"http://127.0.0.1:80/a", "http://127.1.2.3/", "http://localhost/", "http://[::1]:1/a",
        "http://169.254.170.2/v2", "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1/credentials", "https://keys.example.com/a"})
    EXPECT_EQ(url_of(url)->value().url, url);
  for (const std::string url :
       {"http://keys.example.com/a", "http://127.0.0.1.example.com/", "http://10.0.0.1/",
        "http://u@127.0.0.1/", "http://127.0.0.1@example.com/", "http://[::1/", "https:///a",
        "ftp://127.0.0.1/", "127.0.0.1", "http://127.0.0.1/ a"})
    EXPECT_EQ(url_of(url).error().code(), Code::kInvalidArgument) << url;
}

TEST(S3ContainerKeys, ARelativeAddressIsOfEcsAndCountsFirst) {
  EXPECT_EQ(ContainerKeysOf(EnvironmentOf({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/a"},
                                           {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "https://b/"}}))
                ->value()
                .url,
            "http://169.254.170.2/v2/a");
  for (const std::string path : {"@example.com/", "v2", "/a b"}) {
    EXPECT_EQ(ContainerKeysOf(EnvironmentOf({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", path}}))
                  .error()
                  .code(),
              Code::kInvalidArgument);
  }
  EXPECT_EQ(ContainerKeysOf(EnvironmentOf({})).value(), std::nullopt);
  EXPECT_EQ(ContainerKeysOf(EnvironmentOf({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "https://b/"},
                                           {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "a\nb"}}))
                .error()
                .code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::storage
