#include "storage/s3_address.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

Environment Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

Result<S3Address> Parse(std::string_view text, std::map<std::string, std::string> variables = {}) {
  return ParseS3Address(text, Variables(std::move(variables)));
}

TEST(S3Address, ABucketAloneIsAtAmazon) {
  const S3Address address = Parse("s3://images").value();
  EXPECT_EQ(address.bucket, "images");
  EXPECT_EQ(address.prefix, "");
  EXPECT_EQ(address.endpoint, "https://s3.us-east-1.amazonaws.com");
  EXPECT_EQ(address.region, "us-east-1");
  EXPECT_FALSE(address.requester_pays);
  EXPECT_FALSE(address.web_identity());
  const S3Place place = PlaceOf(address);
  EXPECT_EQ(place.origin, "https://images.s3.us-east-1.amazonaws.com");
  EXPECT_EQ(place.host, "images.s3.us-east-1.amazonaws.com");
  EXPECT_EQ(place.path, "");
}

TEST(S3Address, OptionsSayTheRest) {
  const S3Address address =
      Parse(
          "s3://images/train?endpoint=http://Minio:9000/base/&region=eu-west-1&requester-pays=true"
          "&listing=lists/a%20b.txt")
          .value();
  EXPECT_EQ(address.prefix, "train/");
  EXPECT_EQ(address.name(), "s3://images/train/");
  EXPECT_EQ(address.endpoint, "http://minio:9000/base");
  EXPECT_EQ(address.region, "eu-west-1");
  EXPECT_TRUE(address.requester_pays);
  EXPECT_EQ(address.listing, "lists/a b.txt");
  const S3Place place = PlaceOf(address);
  EXPECT_EQ(place.origin, "http://minio:9000");
  EXPECT_EQ(place.path, "/base/images");
}

TEST(S3Address, StylesAreChosenOrSaid) {
  using Style = S3Address::Style;
  EXPECT_EQ(Parse("s3://images")->style, Style::kVirtualHost);
  // The certificate would not hold.
  EXPECT_EQ(Parse("s3://images.example.com")->style, Style::kPath);
  EXPECT_EQ(Parse("s3://images?endpoint=https://minio")->style, Style::kPath);
  const S3Address chosen = Parse("s3://images?endpoint=https://minio:9000&style=virtual").value();
  EXPECT_EQ(PlaceOf(chosen).origin, "https://images.minio:9000");
  EXPECT_EQ(PlaceOf(chosen).path, "");
  EXPECT_EQ(Parse("s3://images?style=path")->style, Style::kPath);
}

TEST(S3Address, PrefixesAreDecodedAndEndWithASlash) {
  EXPECT_EQ(Parse("s3://images/")->prefix, "");
  EXPECT_EQ(Parse("s3://images/a b/c%3Fd%25+é")->prefix, "a b/c?d%+é/");
  EXPECT_EQ(Parse("s3://images/a/")->prefix, "a/");
}

TEST(S3Address, TheHostHasNoPortThatIsTheSchemesOwn) {
  EXPECT_EQ(PlaceOf(Parse("s3://abc?endpoint=https://h:443").value()).host, "h");
  EXPECT_EQ(PlaceOf(Parse("s3://abc?endpoint=http://h:80/").value()).host, "h");
  EXPECT_EQ(PlaceOf(Parse("s3://abc?endpoint=http://h:443").value()).host, "h:443");
  EXPECT_EQ(PlaceOf(Parse("s3://abc?endpoint=http://[::1]:9000").value()).host, "[::1]:9000");
}

TEST(S3Address, VariablesOfTheEnvironmentFillIn) {
  const std::map<std::string, std::string> variables = {
      {"AWS_REGION", "eu-west-1"},
      {"AWS_ENDPOINT_URL", "https://all"},
      {"AWS_ENDPOINT_URL_S3", "https://minio:9000"}};
  EXPECT_EQ(Parse("s3://abc", variables)->endpoint, "https://minio:9000");
  EXPECT_EQ(Parse("s3://abc", variables)->region, "eu-west-1");
  EXPECT_EQ(Parse("s3://abc?region=a-1&endpoint=http://h", variables)->endpoint, "http://h");
  EXPECT_EQ(Parse("s3://abc?region=a-1", variables)->region, "a-1");
  EXPECT_EQ(Parse("s3://abc", {{"AWS_DEFAULT_REGION", "cn-north-1"}})->endpoint,
            "https://s3.cn-north-1.amazonaws.com.cn");
}

TEST(S3Address, PartitionsOfAmazonHaveTheirDomains) {
  const std::map<std::string, std::string> domains = {
      {"eu-central-1", "amazonaws.com"},      {"us-gov-west-1", "amazonaws.com"},
      {"cn-northwest-1", "amazonaws.com.cn"}, {"eusc-de-east-1", "amazonaws.eu"},
      {"us-iso-east-1", "c2s.ic.gov"},        {"us-isob-east-1", "sc2s.sgov.gov"},
      {"us-isof-south-1", "csp.hci.ic.gov"},  {"eu-isoe-west-1", "cloud.adc-e.uk"}};
  for (const auto& [region, domain] : domains) {
    const S3Address address = Parse("s3://abc?token-file=/t&region=" + region).value();
    EXPECT_EQ(address.endpoint, "https://s3." + region + "." + domain);
    EXPECT_EQ(address.sts_endpoint, "https://sts." + region + "." + domain);
  }
}

TEST(S3Address, AWebIdentityIsSaidOrInTheEnvironment) {
  const std::map<std::string, std::string> variables = {{"AWS_ROLE_ARN", "arn:of:role"},
                                                        {"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"},
                                                        {"AWS_REGION", "eu-west-1"}};
  const S3Address found = Parse("s3://abc", variables).value();
  EXPECT_EQ(found.role_arn, "arn:of:role");
  EXPECT_EQ(found.token_file, "/token");
  EXPECT_EQ(found.sts_endpoint, "https://sts.eu-west-1.amazonaws.com");
  // Keys count before it.
  auto with_keys = variables;
  with_keys["AWS_ACCESS_KEY_ID"] = "AKIA";
  EXPECT_FALSE(Parse("s3://abc", with_keys)->web_identity());
  const S3Address said = Parse("s3://abc?role-arn=r&token-file=/t", with_keys).value();
  EXPECT_EQ(said.role_arn, "r");
  EXPECT_EQ(said.token_file, "/t");
  // Other servers are their own token service.
  const S3Address minio = Parse("s3://abc?endpoint=http://minio:9000&token-file=/t").value();
  EXPECT_EQ(minio.sts_endpoint, "http://minio:9000");
  EXPECT_EQ(minio.role_arn, "");
  EXPECT_EQ(Parse("s3://abc?token-file=/t&sts-endpoint=http://sts/")->sts_endpoint, "http://sts");
}

TEST(S3Address, WhatIsWrongIsSaid) {
  struct Case {
    std::string text;
    std::string says;
  };
  for (const Case& c :
       {Case{"s3:/b", "s3://"},
        Case{"s3://", "no name of a bucket"},
        Case{"s3://b", "no name of a bucket"},
        Case{"s3:///k", "no name of a bucket"},
        Case{"s3://bu cket", "no name of a bucket"},
        Case{"s3://bucket/a%2", "a % itself is %25"},
        Case{"s3://bucket?regin=a", "there are endpoint, region"},
        Case{"s3://bucket?region", "no option with a value"},
        Case{"s3://bucket?region=", "no option with a value"},
        Case{"s3://bucket?region=a&region=b", "given twice"},
        Case{"s3://bucket?region=US East", "small letters"},
        Case{"s3://bucket?endpoint=minio:9000", "http://host or https://host"},
        Case{"s3://bucket?endpoint=https://", "this is no host"},
        Case{"s3://bucket?endpoint=https://h/a b", "this is no host"},
        Case{"s3://bucket?style=host", "path or virtual"},
        Case{"s3://bucket?requester-pays=yes", "true or false"},
        Case{"s3://bucket?listing=/lists/x", "listing: keys do not begin with a slash"},
        Case{"s3://bucket?listing=lists/", "listing is the key of an object"},
        Case{"s3://bucket?listing=" + std::string(1025, 'k'), "listing is the key of an object"},
        Case{"s3://bucket?role-arn=r", "AWS_WEB_IDENTITY_TOKEN_FILE"},
        Case{"s3://bucket?token-file=/t&sts-endpoint=h", "sts-endpoint=h"}}) {
    const auto address = Parse(c.text);
    ASSERT_FALSE(address) << c.text;
    EXPECT_EQ(address.error().code(), Code::kInvalidArgument) << c.text;
    EXPECT_THAT(address.error().message(), HasSubstr(c.says)) << c.text;
  }
}

TEST(S3Address, PasswordsAreNotRepeated) {
  const auto address = Parse("s3://bucket?endpoint=https://user:secret@host");
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message(), Not(HasSubstr("secret")));
}

TEST(S3Place, GoogleUnpacksGzip) {
  const auto unpacks = [](const std::string& endpoint) {
    return PlaceOf(Parse("s3://abc?endpoint=" + endpoint).value()).unpacks_gzip();
  };
  for (const char* const endpoint :
       {"https://storage.googleapis.com", "https://storage.googleapis.com&style=virtual",
        "http://storage.googleapis.com:8080", "https://storage.europe-west3.rep.googleapis.com"})
    EXPECT_TRUE(unpacks(endpoint)) << endpoint;
  for (const char* const endpoint : {"https://s3.us-east-1.amazonaws.com",
                                     "https://googleapis.com.example", "http://127.0.0.1:1"})
    EXPECT_FALSE(unpacks(endpoint)) << endpoint;
}

TEST(S3Place, IsConfidentialByHttpsOrOnThisMachine) {
  const auto confidential = [](const std::string& endpoint) {
    return PlaceOf(Parse("s3://abc?endpoint=" + endpoint).value()).confidential();
  };
  for (const char* const endpoint : {"https://h", "https://192.0.2.1:9000", "http://127.0.0.1:9000",
                                     "http://127.8.0.1", "http://localhost:1", "http://[::1]:9000"})
    EXPECT_TRUE(confidential(endpoint)) << endpoint;
  for (const char* const endpoint :
       {"http://h", "http://h:443", "http://127.evil.example", "http://[::2]:9000",
        "http://localhost.example", "http://localhost&style=virtual"})
    EXPECT_FALSE(confidential(endpoint)) << endpoint;
}

}  // namespace
}  // namespace optcache::storage
