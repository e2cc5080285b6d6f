#include "storage/s3_signature.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

// The keys of the examples that AWS publishes.
const S3Credentials kExampleKeys = {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                                    .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                    .session_token = ""};

std::string SignatureOf(const std::string& authorization) {
  return authorization.substr(authorization.rfind('=') + 1);
}

// "Authenticating Requests: Using the Authorization Header", the four examples.
class S3Examples : public testing::Test {
 protected:
  // Adds what all four have.
  std::string Sign(SignedRequest request) {
    request.headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    request.headers.emplace_back("x-amz-date", "20130524T000000Z");
    request.headers.emplace_back("x-amz-content-sha256", request.payload_hash);
    return Authorization(request, {.date_time = "20130524T000000Z", .region = "us-east-1"},
                         kExampleKeys);
  }
};

TEST_F(S3Examples, GetObject) {
  EXPECT_EQ(Sign({.method = "GET",
                  .path = "/test.txt",
                  .query = {},
                  .headers = {{"range", "bytes=0-9"}},
                  .payload_hash = kEmptyPayloadHash}),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_F(S3Examples, PutObjectWithABodyAndAnEncodedPath) {
  EXPECT_EQ(
      SignatureOf(Sign(
          {.method = "PUT",
           .path = "/test%24file.text",
           .query = {},
           .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                       {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
           .payload_hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"})),
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_F(S3Examples, GetBucketLifecycleWithAQueryWithoutAValue) {
  EXPECT_EQ(SignatureOf(Sign({.method = "GET",
                              .path = "/",
                              .query = {{"lifecycle", ""}},
                              .headers = {},
                              .payload_hash = kEmptyPayloadHash})),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST_F(S3Examples, ListObjectsWithAQueryThatIsNotInOrder) {
  EXPECT_EQ(SignatureOf(Sign({.method = "GET",
                              .path = "/",
                              .query = {{"prefix", "J"}, {"max-keys", "2"}},
                              .headers = {},
                              .payload_hash = kEmptyPayloadHash})),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

// Of AWS's test suite for Signature Version 4.
class SignatureSuite : public testing::Test {
 protected:
  SignedRequest Request(QueryFields query) {
    return {.method = "GET",
            .path = "/",
            .query = std::move(query),
            .headers = {{"x-amz-date", "20150830T123600Z"}, {"host", "example.amazonaws.com"}},
            .payload_hash = kEmptyPayloadHash};
  }
  const SigningScope scope_ = {
      .date_time = "20150830T123600Z", .region = "us-east-1", .service = "service"};
  const S3Credentials keys_ = {.access_key_id = "AKIDEXAMPLE",
                               .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                               .session_token = ""};
};

TEST_F(SignatureSuite, GetVanilla) {
  EXPECT_EQ(CanonicalRequest(Request({})),
            "GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(StringToSign(Request({}), scope_),
            "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/service/aws4_request\n"
            "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63");
  EXPECT_EQ(SignatureOf(Authorization(Request({}), scope_, keys_)),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST_F(SignatureSuite, GetVanillaQueryOrderKeyCase) {
  EXPECT_EQ(SignatureOf(Authorization(Request({{"Param2", "value2"}, {"Param1", "value1"}}), scope_,
                                      keys_)),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(S3Signature, QueriesAreEncodedAndThenSorted) {
  // '~' sorts behind letters, and an encoded '=' before them.
  const SignedRequest request = {.method = "GET",
                                 .path = "/a%20b",
                                 .query = {{"~", "1"}, {"b", "x y+z/é"}, {"=", ""}, {"b", "A"}},
                                 .headers = {},
                                 .payload_hash = "h"};
  EXPECT_EQ(CanonicalRequest(request), "GET\n/a%20b\n%3D=&b=A&b=x%20y%2Bz%2F%C3%A9&~=1\n\n\nh");
}

TEST(S3Signature, BlanksInHeadersAreSqueezed) {
  const SignedRequest request = {.method = "GET",
                                 .path = "/",
                                 .query = {},
                                 .headers = {{"b", "  a   b  "}, {"a", ""}},
                                 .payload_hash = "h"};
  EXPECT_EQ(CanonicalRequest(request), "GET\n/\n\na:\nb:a b\n\na;b\nh");
}

TEST(S3Signature, SignsAllThatIsSentAndTheSessionToken) {
  S3Credentials keys = kExampleKeys;
  keys.session_token = "a/token=";
  const std::vector<std::string> headers =
      SignedHeaders({.method = "GET", .host = "host:9000", .path = "/b/k", .query = {}},
                    {{"range", "bytes=0-9"}}, "eu-west-1", 1369353600, keys);
  ASSERT_EQ(headers.size(), 5U);
  EXPECT_EQ(headers[0], "range: bytes=0-9");
  EXPECT_EQ(headers[1], "x-amz-date: 20130524T000000Z");
  EXPECT_EQ(headers[2], "x-amz-content-sha256: " + std::string(kEmptyPayloadHash));
  EXPECT_EQ(headers[3], "x-amz-security-token: a/token=");
  EXPECT_TRUE(headers[4].starts_with(
      "Authorization: AWS4-HMAC-SHA256 "
      "Credential=AKIAIOSFODNN7EXAMPLE/20130524/eu-west-1/s3/aws4_request,"
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token,Signature="))
      << headers[4];
}

TEST(S3Signature, WithoutKeysNothingIsSigned) {
  EXPECT_EQ(SignedHeaders({.method = "GET", .host = "h", .path = "/", .query = {}},
                          {{"range", "bytes=0-9"}}, "r", 0, {}),
            std::vector<std::string>{"range: bytes=0-9"});
}

TEST(S3Signature, TimesAreUtc) {
  EXPECT_EQ(AmazonDateTime(0), "19700101T000000Z");
  EXPECT_EQ(AmazonDateTime(1709210096.9), "20240229T123456Z");
}

}  // namespace
}  // namespace optcache::storage
