#include "storage/s3_web_identity.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/key_sources.h"
#include "support/scripted_http_server.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string StsAnswer(const std::string& id, const std::string& expiration) {
  return fmt::format(
      "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
      "<AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>a</"
      "SubjectFromWebIdentityToken>"
      "<Credentials><SessionToken>token</SessionToken><SecretAccessKey>secret</SecretAccessKey>"
      "<Expiration>{}</Expiration><AccessKeyId>{}</AccessKeyId></Credentials>"
      "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
      expiration, id);
}

class S3WebIdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_.Write("token", "a.jwt.token\n");
    identity_ = Make();
  }
  std::unique_ptr<S3WebIdentity> Make(size_t waiting_max = 1024) {
    return std::make_unique<S3WebIdentity>(
        S3WebIdentityOptions{.sts_endpoint = server_.url(),
                             .role_arn = "arn:aws:iam::1:role/reader",
                             .token_file = dir_.Join("token"),
                             .ca_file = "",
                             .renewal = {.waiting_max = waiting_max}},
        clock_);
  }
  void Script(ScriptedAnswer answer) { server_.AnswerNext("", std::move(answer)); }
  std::pair<Result<S3Credentials>, bool> Get() { return KeysOf(*identity_); }

  ClockOnTheWall clock_;
  TempDir dir_;
  ScriptedHttpServer server_;
  std::unique_ptr<S3WebIdentity> identity_;
};

TEST_F(S3WebIdentityTest, AsksOnceWithTheTokenAndKeepsTheKeys) {
  Script({.body = StsAnswer("ASIA1", "2023-11-14T23:13:20Z")});
  const auto [keys, at_once] = Get();
  EXPECT_FALSE(at_once);
  EXPECT_EQ(keys.value(), (S3Credentials{.access_key_id = "ASIA1",
                                         .secret_access_key = "secret",
                                         .session_token = "token"}));
  EXPECT_TRUE(Get().second);
  ASSERT_EQ(server_.requests().size(), 1U);
  EXPECT_EQ(server_.requests()[0].method, "POST");
  EXPECT_EQ(server_.requests()[0].target, "/");
  EXPECT_EQ(server_.requests()[0].body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=optcache"
            "&WebIdentityToken=a.jwt.token&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Freader");
}

TEST_F(S3WebIdentityTest, RenewsBeforeTheEndWhileTheOldOnesAreUsed) {
  Script({.body = StsAnswer("ASIA1", "2023-11-14T23:13:20Z")});
  ASSERT_TRUE(Get().first);
  dir_.Write("token", "a.newer.token");
  Script({.body = StsAnswer("ASIA2", "2023-11-15T00:13:20Z")});
  clock_.Pass(3600 - 301);
  EXPECT_EQ(Get().first->access_key_id, "ASIA1");
  EXPECT_EQ(server_.requests().size(), 1U);
  clock_.Pass(2);
  const auto [old, at_once] = Get();
  EXPECT_TRUE(at_once) << "nobody waits for a renewal";
  EXPECT_EQ(old->access_key_id, "ASIA1");
  ASSERT_TRUE(server_.WaitForRequests(2));
  EXPECT_THAT(server_.requests()[1].body, HasSubstr("a.newer.token"));
  // Past the end of the old ones; whether the answer has come by now or is waited for.
  clock_.Pass(300);
  EXPECT_EQ(Get().first->access_key_id, "ASIA2");
  EXPECT_EQ(server_.requests().size(), 2U);
}

TEST_F(S3WebIdentityTest, ARenewalThatFailsIsTriedAgainLaterAndTheOldOnesAreUsed) {
  Script({.body = StsAnswer("ASIA1", "2023-11-14T23:13:20Z")});
  ASSERT_TRUE(Get().first);
  Script({.status = 503});
  clock_.Pass(3400);
  EXPECT_EQ(Get().first->access_key_id, "ASIA1");
  ASSERT_TRUE(server_.WaitForRequests(2));
  EXPECT_EQ(Get().first->access_key_id, "ASIA1");
  EXPECT_EQ(server_.requests().size(), 2U) << "not at once";
}

TEST_F(S3WebIdentityTest, ManyWaitForOneAnswer) {
  Script({.without_answer = true, .end = ScriptedAnswer::End::kStall});
  int called = 0;
  for (int i = 0; i < 3; ++i) {
    S3CredentialsCallback later = [&](const Result<S3Credentials>& keys) {
      EXPECT_EQ(keys.error().code(), Code::kCancelled);
      ++called;
    };
    EXPECT_EQ(identity_->Get(later).value(), std::nullopt);
  }
  ASSERT_TRUE(server_.WaitForRequests(1));
  identity_->Shutdown();
  EXPECT_EQ(called, 3);
  EXPECT_EQ(server_.requests().size(), 1U);
  EXPECT_EQ(Get().first.error().code(), Code::kCancelled);
}

TEST_F(S3WebIdentityTest, NotAnyNumberWaits) {
  identity_ = Make(1);
  Script({.without_answer = true, .end = ScriptedAnswer::End::kStall});
  S3CredentialsCallback later = [](const Result<S3Credentials>&) {};
  ASSERT_TRUE(identity_->Get(later));
  EXPECT_EQ(Get().first.error().code(), Code::kResourceExhausted);
}

TEST_F(S3WebIdentityTest, RefusalsAreSaid) {
  Script({.status = 400,
          .body = "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>No provider."
                  "</Message></Error></ErrorResponse>"});
  const auto refused = Get().first;
  EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.error().message(), HasSubstr("InvalidIdentityToken: No provider: "));
  Script({.status = 503});
  EXPECT_EQ(Get().first.error().code(), Code::kUnavailable);
  Script({.body = "<html/>"});
  EXPECT_EQ(Get().first.error().code(), Code::kDataLoss);
  Script({.body = StsAnswer("ASIA", "2023-11-14T22:13:20Z")});
  EXPECT_EQ(Get().first.error().code(), Code::kUnavailable) << "expired already";
  dir_.Write("token", "two words");
  const auto unreadable = Get().first;
  EXPECT_EQ(unreadable.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(unreadable.error().message(), HasSubstr("the token of the web identity"));
  EXPECT_THAT(unreadable.error().message(), Not(HasSubstr("two words")));
}

TEST_F(S3WebIdentityTest, AnExpiredTokenIsToldApart) {
  EXPECT_FALSE(identity_->expired());
  for (const std::string code : {"ExpiredToken", "ExpiredTokenException"}) {
    Script({.status = 400,
            .body = "<ErrorResponse><Error><Code>" + code + "</Code></Error></ErrorResponse>"});
    const auto refused = Get().first;
    EXPECT_EQ(refused.error().code(), Code::kPermissionDenied);
    EXPECT_THAT(refused.error().message(),
                HasSubstr(code + ": the token in " + dir_.Join("token") + " has expired"));
    EXPECT_TRUE(identity_->expired());
  }
  Script({.status = 403});
  EXPECT_EQ(Get().first.error().code(), Code::kPermissionDenied);
  EXPECT_FALSE(identity_->expired());
}

TEST(S3WebIdentityAnswer, PartsThatAreNoKeysAreRefused) {
  EXPECT_TRUE(ParseWebIdentityAnswer(StsAnswer("ASIA", "2023-11-14T22:13:20Z")));
  for (const std::string& text :
       {StsAnswer("", "2023-11-14T22:13:20Z"), StsAnswer("A\nB: c", "2023-11-14T22:13:20Z"),
        StsAnswer("ASIA", "soon"), std::string("<a/>"), std::string("{")})
    EXPECT_EQ(ParseWebIdentityAnswer(text).error().code(), Code::kDataLoss) << text;
}

}  // namespace
}  // namespace optcache::storage
