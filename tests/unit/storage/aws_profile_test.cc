#include "storage/aws_profile.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/s3_address.h"
#include "support/key_sources.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

AwsFile Config(std::string_view text) {
  return ParseAwsFile(text, AwsFileKind::kConfig).value();
}

TEST(AwsFile, SectionsOfConfigAreProfilesByTheirNames) {
  const AwsFile file = Config(
      "# mine\n[default]\nregion=eu-west-1\n\n[profile big models]\nREGION = us-east-2 ; far\n"
      "[ profile  \"quoted one\" ] # theirs\nregion = a#b\r\n[other]\nregion = none\n"
      "[sso-session x]\nregion = none\n[services s]\nregion = none\n");
  EXPECT_EQ(file.profiles.size(), 3U);
  EXPECT_EQ(file.profiles.at("default").at("region").value, "eu-west-1");
  EXPECT_EQ(file.profiles.at("default").at("region").line, 3U);
  EXPECT_EQ(file.profiles.at("big models").at("region").value, "us-east-2");
  EXPECT_EQ(file.profiles.at("quoted one").at("region").value, "a#b");
  EXPECT_EQ(file.services.size(), 1U);
}

TEST(AwsFile, SectionsOfCredentialsAreProfiles) {
  const AwsFile file =
      ParseAwsFile("[train]\naws_access_key_id = A\n[train]\naws_access_key_id = B\n",
                   AwsFileKind::kCredentials)
          .value();
  EXPECT_EQ(file.profiles.at("train").at("aws_access_key_id").value, "B") << "the last one counts";
}

TEST(AwsFile, LinesMayBeIndentedAndNested) {
  const AwsFile file = Config(
      "[profile a]\n  region = x\n  s3 =\n    addressing_style = path\n  endpoint_url = y\n"
      "  ca_bundle = z\n    more\n[services b]\ns3 =\n\tendpoint_url = w\n");
  const AwsSection& a = file.profiles.at("a");
  EXPECT_EQ(a.at("region").value, "x");
  EXPECT_EQ(a.at("s3.addressing_style").value, "path");
  EXPECT_EQ(a.at("endpoint_url").value, "y");
  EXPECT_EQ(a.at("ca_bundle").value, "z");
  EXPECT_EQ(file.services.at("b").at("s3.endpoint_url").value, "w");
}

TEST(AwsFile, WhatIsWrongIsALineWithoutItsContent) {
  const std::map<std::string, std::string> cases = {
      {"s3cr3t = a\n", "line 1: it is before the first [section]"},
      {"[default]\n\ns3cr3t\n", "line 3 in [default]: it is no NAME = VALUE"},
      {"[default]\n= s3cr3t\n", "line 2 in [default]: it is no NAME"},
      {"[default\nregion = s3cr3t\n", "line 1: it begins like a [section]"},
      {"[default] s3cr3t\n", "line 1: it begins like"},
      {"[]\n", "line 1"},
      {"[default]\ns3 =\n  s3cr3t\n", "line 3 in [default]"}};
  for (const auto& [text, says] : cases) {
    const auto file = ParseAwsFile(text, AwsFileKind::kConfig);
    EXPECT_EQ(file.error().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(file.error().message(), HasSubstr(says));
    EXPECT_THAT(file.error().message(), Not(HasSubstr("s3cr3t")));
  }
}

class AwsProfileTest : public testing::Test {
 protected:
  void SetUp() override { variables_["HOME"] = dir_.path(); }
  void WriteConfig(const std::string& text) const { dir_.Write(".aws/config", text); }
  void WriteCredentials(const std::string& text) const { dir_.Write(".aws/credentials", text); }
  Result<AwsProfile> Read() const { return ReadAwsProfile(EnvironmentOf(variables_)); }
  S3Address Address(const std::string& text = "s3://bucket", bool own_keys = false) const {
    const auto environment = WithAwsProfile(EnvironmentOf(variables_), {.own_keys = own_keys});
    return ParseS3Address(text, environment.value()).value();
  }

  TempDir dir_;
  std::map<std::string, std::string> variables_;
};

constexpr const char* kPairA = "aws_access_key_id = A\naws_secret_access_key = secret\n";
constexpr const char* kPairB = "aws_access_key_id = B\naws_secret_access_key = secret\n";

TEST_F(AwsProfileTest, WithoutFilesThereIsNothing) {
  EXPECT_EQ(Read()->keys.value(), std::nullopt);
  EXPECT_EQ(Read()->region, "");
  variables_["HOME"] = "/dev/null";
  EXPECT_TRUE(Read());
  variables_.clear();
  EXPECT_TRUE(Read());
}

TEST_F(AwsProfileTest, CredentialsCountBeforeConfig) {
  WriteConfig("[default]\nregion = eu-west-1\n" + std::string(kPairB));
  EXPECT_EQ(Read()->keys.value()->access_key_id, "B");
  WriteCredentials("[default]\naws_session_token = t\n" + std::string(kPairA));
  EXPECT_EQ(
      Read()->keys.value(),
      (S3Credentials{.access_key_id = "A", .secret_access_key = "secret", .session_token = "t"}));
  EXPECT_EQ(Read()->region, "eu-west-1");
}

TEST_F(AwsProfileTest, SecretsOfOtherServersMayHaveBlanks) {
  WriteCredentials("[default]\naws_access_key_id = A\naws_secret_access_key = a/b + c=d\n");
  EXPECT_EQ(Read()->keys.value()->secret_access_key, "a/b + c=d");
}

TEST_F(AwsProfileTest, VariablesNameFilesAndProfile) {
  dir_.Write("c", "[profile train]\nregion = eu-west-1\n");
  dir_.Write("k", "[train]\n" + std::string(kPairA));
  variables_["AWS_CONFIG_FILE"] = "~/c";
  variables_["AWS_SHARED_CREDENTIALS_FILE"] = dir_.Join("k");
  variables_["AWS_PROFILE"] = "train";
  EXPECT_EQ(Read()->region, "eu-west-1");
  EXPECT_EQ(Read()->keys.value()->access_key_id, "A");
  variables_["AWS_PROFILE"] = "tain";
  const auto missing = Read();
  EXPECT_EQ(missing.error().code(), Code::kInvalidArgument);
  for (const std::string& part :
       {std::string("AWS_PROFILE names the profile \"tain\""), dir_.Join("c"), dir_.Join("k")})
    EXPECT_THAT(missing.error().message(), HasSubstr(part));
  variables_.erase("AWS_PROFILE");
  variables_["AWS_DEFAULT_PROFILE"] = "tain";
  EXPECT_THAT(Read().error().message(), HasSubstr("AWS_DEFAULT_PROFILE names the profile"));
}

TEST_F(AwsProfileTest, FilesThatAreNoneAreSaid) {
  WriteConfig("[default\n");
  EXPECT_THAT(Read().error().message(), HasSubstr(dir_.Join(".aws/config") + ": line 1"));
  variables_["AWS_CONFIG_FILE"] = dir_.path();
  EXPECT_THAT(Read().error().message(), HasSubstr(dir_.path()));
  dir_.Write("long", std::string(kAwsFileBytesMax + 1, '\n'));
  variables_["AWS_CONFIG_FILE"] = dir_.Join("long");
  EXPECT_THAT(Read().error().message(), HasSubstr("limit of 1.00 MiB"));
}

TEST_F(AwsProfileTest, KeysThatAreNoneAreSaidWithoutThem) {
  for (const std::string text : {"aws_access_key_id = s3cr3t\n", "aws_secret_access_key = s3cr3t\n",
                                 "aws_access_key_id = s3cr3t\naws_secret_access_key =\n",
                                 "aws_access_key_id = a\naws_secret_access_key = s3cr3t\x01two\n",
                                 "aws_access_key_id = s3cr3t two\naws_secret_access_key = a\n"}) {
    WriteCredentials("[default]\n" + text);
    const auto keys = Read()->keys;
    EXPECT_EQ(keys.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(keys.error().message(), HasSubstr(dir_.Join(".aws/credentials") + " line "));
    EXPECT_THAT(keys.error().message(), HasSubstr("\"default\""));
    EXPECT_THAT(keys.error().message(), Not(HasSubstr("s3cr3t")));
  }
}

TEST_F(AwsProfileTest, KeysByOtherWaysAreSaidWithWhatToDo) {
  for (const std::string text : {"sso_session = x\n", "credential_process = cmd\n",
                                 "login_session = arn\n", "role_arn = arn\nsource_profile = y\n",
                                 "role_arn = arn\ncredential_source = Environment\n"}) {
    WriteConfig("[default]\n" + text);
    EXPECT_THAT(Read()->keys.error().message(),
                HasSubstr("aws configure export-credentials --profile default"))
        << text;
  }
  // A role is another identity than the pair beside it; what comes by SSO is the same one.
  WriteCredentials("[default]\n" + std::string(kPairA));
  EXPECT_FALSE(Read()->keys);
  WriteConfig("[default]\nsso_session = x\n");
  EXPECT_TRUE(Read()->keys);
}

TEST_F(AwsProfileTest, RegionAndEndpointsFillWhatIsNotSaid) {
  WriteConfig(
      "[default]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:1\nservices = local\n");
  EXPECT_EQ(Address().region, "eu-west-1");
  EXPECT_EQ(Address().endpoint, "http://127.0.0.1:1");
  WriteConfig(
      "[default]\nendpoint_url = http://127.0.0.1:1\nservices = local\n[services local]\n"
      "s3 =\n  endpoint_url = http://127.0.0.1:2\nsts =\n  endpoint_url = http://127.0.0.1:3\n");
  EXPECT_EQ(Address().endpoint, "http://127.0.0.1:2");
  EXPECT_EQ(Address("s3://bucket?token-file=/t").sts_endpoint, "http://127.0.0.1:3");
  EXPECT_EQ(Address("s3://bucket?endpoint=http://127.0.0.1:4").endpoint, "http://127.0.0.1:4");
  variables_["AWS_ENDPOINT_URL"] = "http://127.0.0.1:5";
  variables_["AWS_REGION"] = "us-west-2";
  EXPECT_EQ(Address().endpoint, "http://127.0.0.1:5");
  EXPECT_EQ(Address().region, "us-west-2");
}

TEST_F(AwsProfileTest, CertificatesToTrustAreThoseOfTheVariableOrTheProfile) {
  const auto bundle = [&] {
    return WithAwsProfile(EnvironmentOf(variables_)).value()("AWS_CA_BUNDLE");
  };
  EXPECT_EQ(bundle(), std::nullopt);
  WriteConfig("[default]\nca_bundle = ~/ca.pem\n");
  EXPECT_EQ(bundle(), dir_.Join("ca.pem"));
  variables_["AWS_CA_BUNDLE"] = "/other.pem";
  EXPECT_EQ(bundle(), "/other.pem");
}

TEST_F(AwsProfileTest, AWebIdentityIsThatOfTheAddress) {
  WriteConfig("[default]\nrole_arn = arn:r\nweb_identity_token_file = ~/token\n");
  EXPECT_EQ(Address().token_file, dir_.Join("token"));
  EXPECT_EQ(Address().role_arn, "arn:r");
  EXPECT_EQ(Read()->keys.value(), std::nullopt);
  EXPECT_FALSE(Address("s3://bucket", /*own_keys=*/true).web_identity());
  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/other";
  EXPECT_EQ(Address().token_file, "/other");
  EXPECT_EQ(Address().role_arn, "") << "not a part of the one and a part of the other";
  variables_["AWS_ACCESS_KEY_ID"] = "A";
  EXPECT_FALSE(Address().web_identity());
}

}  // namespace
}  // namespace optcache::storage
