#include "storage/s3_instance_keys.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/key_sources.h"
#include "support/scripted_http_server.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;

constexpr const char* kRoles = "latest/meta-data/iam/security-credentials/";
constexpr const char* kToken = "latest/api/token";

class S3InstanceKeysTest : public testing::Test {
 protected:
  ScriptedHttpServer server_;
  ClockOnTheWall clock_;
  S3InstanceKeys keys_{{.endpoint = server_.url()}, clock_};
};

TEST_F(S3InstanceKeysTest, AreAskedForByTokenAndRole) {
  server_.AnswerNext(kToken, {.body = "imds-token"});
  server_.AnswerNext(kRoles, {.body = "reader\n"});
  server_.AnswerNext(std::string(kRoles) + "reader",
                     {.body = R"({"Code": "Success", "AccessKeyId": "ASIA1", "Token": "token",
                                  "SecretAccessKey": "secret",
                                  "Expiration": "2023-11-15T04:13:20Z"})"});
  EXPECT_EQ(KeysOf(keys_).first.value(), (S3Credentials{.access_key_id = "ASIA1",
                                                        .secret_access_key = "secret",
                                                        .session_token = "token"}));
  EXPECT_TRUE(KeysOf(keys_).second) << "they are kept";
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].method, "PUT");
  EXPECT_TRUE(requests[0].headers.contains("x-aws-ec2-metadata-token-ttl-seconds"));
  EXPECT_EQ(requests[1].headers.at("x-aws-ec2-metadata-token"), "imds-token");
  EXPECT_EQ(requests[2].headers.at("x-aws-ec2-metadata-token"), "imds-token");
}

TEST_F(S3InstanceKeysTest, AMachineWithoutARoleHasNone) {
  server_.AnswerNext(kToken, {.body = "imds-token"});
  EXPECT_TRUE(KeysOf(keys_).first->anonymous());
  EXPECT_TRUE(KeysOf(keys_).second);
  EXPECT_EQ(server_.requests().size(), 2U);
  // Perhaps it has been given one since.
  clock_.Pass(301);
  server_.AnswerNext(kToken, {.body = "imds-token"});
  EXPECT_FALSE(KeysOf(keys_).second);
}

TEST_F(S3InstanceKeysTest, RefusalsSayWhatToDo) {
  server_.AnswerNext(kToken, {.status = 403});
  const auto refused = KeysOf(keys_).first;
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.error().message(), HasSubstr("AWS_EC2_METADATA_DISABLED=true"));
  server_.AnswerNext(kToken, {.body = "a token\nof two words"});
  EXPECT_EQ(KeysOf(keys_).first.error().code(), Code::kDataLoss);
  server_.AnswerNext(kToken, {.body = "imds-token"});
  server_.AnswerNext(kRoles, {.body = "../../user-data"});
  EXPECT_EQ(KeysOf(keys_).first.error().code(), Code::kDataLoss);
}

TEST_F(S3InstanceKeysTest, AnAnswerThatNeverComesIsCancelledByShutdown) {
  server_.AnswerNext(kToken, {.without_answer = true, .end = ScriptedAnswer::End::kStall});
  Code ended = Code::kOk;
  S3CredentialsCallback later = [&](const Result<S3Credentials>& keys) {
    ended = keys.error().code();
  };
  ASSERT_EQ(keys_.Get(later).value(), std::nullopt);
  ASSERT_TRUE(server_.WaitForRequests(1));
  keys_.Shutdown();
  EXPECT_EQ(ended, Code::kCancelled);
}

TEST(S3InstanceKeys, AreOfAmazonsMachinesAndNotOfPods) {
  const auto wanted = [](std::map<std::string, std::string> variables, const char* vendor) {
    return InstanceKeysOf(EnvironmentOf(std::move(variables)), vendor)->has_value();
  };
  const std::string disabled = "AWS_EC2_METADATA_DISABLED";
  const std::pair<const std::string, std::string> in_pod = {"KUBERNETES_SERVICE_HOST", "10.0.0.1"};
  EXPECT_TRUE(wanted({}, "Amazon EC2"));
  EXPECT_FALSE(wanted({}, "LENOVO"));
  EXPECT_FALSE(wanted({}, ""));
  EXPECT_FALSE(wanted({in_pod}, "Amazon EC2"));
  EXPECT_TRUE(wanted({in_pod, {disabled, "false"}}, ""));
  EXPECT_FALSE(wanted({{disabled, "True"}}, "Amazon EC2"));
  EXPECT_FALSE(wanted({{disabled, "true"}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://[::1]/"}},
                      "Amazon EC2"));
}

TEST(S3InstanceKeys, AnEndpointAsksForThem) {
  const auto endpoint = [](const std::string& text) {
    return InstanceKeysOf(EnvironmentOf({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", text}}), "");
  };
  EXPECT_EQ(endpoint("http://[fd00:ec2::254]/")->value().endpoint, "http://[fd00:ec2::254]");
  EXPECT_EQ(endpoint("169.254.169.254").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(endpoint("http://a b").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::storage
