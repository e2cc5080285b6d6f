#include "storage/s3_key_chain.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/key_sources.h"
#include "support/manual_clock.h"
#include "support/scripted_http_server.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class S3KeyChainTest : public testing::Test {
 protected:
  void SetUp() override { variables_["HOME"] = dir_.path(); }
  void WriteKeys(const std::string& id) const {
    dir_.Write(".aws/credentials",
               "[default]\naws_access_key_id = " + id + "\naws_secret_access_key = secret\n");
  }
  Result<std::unique_ptr<S3CredentialSource>> Open() {
    return OpenKeyChain(EnvironmentOf(variables_), "", clock_);
  }

  TempDir dir_;
  ManualClock clock_;
  std::map<std::string, std::string> variables_;
};

TEST_F(S3KeyChainTest, EachPlaceCountsBeforeTheNext) {
  ScriptedHttpServer server;
  EXPECT_TRUE(KeysOf(**Open()).first->anonymous());
  variables_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.url();
  KeysOf(**Open());
  EXPECT_EQ(server.requests().back().target, "/latest/api/token");
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.url() + "/container";
  KeysOf(**Open());
  EXPECT_EQ(server.requests().back().target, "/container");
  WriteKeys("OF-FILE");
  EXPECT_EQ(KeysOf(**Open()).first->access_key_id, "OF-FILE");
  variables_["AWS_ACCESS_KEY_ID"] = "OF-VARIABLE";
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  EXPECT_EQ(KeysOf(**Open()).first->access_key_id, "OF-VARIABLE");
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(S3KeyChainTest, IsAnonymousWhereThereIsNoPlaceForKeys) {
  EXPECT_TRUE((*Open())->anonymous());
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:1/container";
  EXPECT_FALSE((*Open())->anonymous());
  WriteKeys("OF-FILE");
  EXPECT_FALSE((*Open())->anonymous());
  variables_["AWS_ACCESS_KEY_ID"] = "OF-VARIABLE";
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  EXPECT_FALSE((*Open())->anonymous());
}

TEST_F(S3KeyChainTest, AProfileWithoutKeysLeavesTheNext) {
  dir_.Write(".aws/config", "[default]\nregion = eu-west-1\n");
  EXPECT_TRUE(KeysOf(**Open()).first->anonymous());
}

TEST_F(S3KeyChainTest, WhatIsWrongIsNotPassedOver) {
  dir_.Write(".aws/credentials", "[default]\naws_access_key_id = s3cr3t\n");
  const auto half = Open();
  EXPECT_EQ(half.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(half.error().message(), HasSubstr(dir_.Join(".aws/credentials") + " line 2"));
  EXPECT_THAT(half.error().message(), Not(HasSubstr("s3cr3t")));
  dir_.Write(".aws/credentials", "");
  variables_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://example.com/";
  EXPECT_EQ(Open().error().code(), Code::kInvalidArgument);
}

TEST_F(S3KeyChainTest, FilesAreReadAgainAfterASecond) {
  WriteKeys("ONE");
  const auto source = *Open();
  WriteKeys("TWO");
  EXPECT_EQ(KeysOf(*source).first->access_key_id, "ONE");
  clock_.Advance(seconds(1));
  EXPECT_EQ(KeysOf(*source).first->access_key_id, "TWO");
}

TEST_F(S3KeyChainTest, AFileThatIsBeingWrittenIsWaitedFor) {
  WriteKeys("ONE");
  const auto source = *Open();
  dir_.Write(".aws/credentials", "");
  clock_.Advance(seconds(9));
  EXPECT_EQ(KeysOf(*source).first->access_key_id, "ONE");
  clock_.Advance(seconds(1));
  const auto gone = KeysOf(*source).first;
  EXPECT_EQ(gone.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(gone.error().message(), HasSubstr("\"default\""));
  WriteKeys("TWO");
  clock_.Advance(seconds(1));
  EXPECT_EQ(KeysOf(*source).first->access_key_id, "TWO");
}

}  // namespace
}  // namespace optcache::storage
