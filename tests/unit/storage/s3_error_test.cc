#include "storage/s3_error.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ErrorXml(const std::string& code, const std::string& message = "Because.") {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code + "</Code><Message>" +
         message + "</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>";
}

TEST(S3Error, ReadsCodeMessageAndRegion) {
  const S3Error error = ParseS3Error(
      "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is\nwrong &amp; "
      "so</Message><Region>eu-central-1</Region></Error>");
  EXPECT_EQ(error.code, "AuthorizationHeaderMalformed");
  EXPECT_EQ(error.message, "the region is wrong & so");
  EXPECT_EQ(error.region, "eu-central-1");
}

TEST(S3Error, ReadsThatOfTheTokenService) {
  const S3Error error = ParseS3Error(
      "<ErrorResponse "
      "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>"
      "<Code>InvalidIdentityToken</Code><Message>no</Message></Error></ErrorResponse>");
  EXPECT_EQ(error.code, "InvalidIdentityToken");
}

TEST(S3Error, OtherTextIsNoError) {
  for (const std::string text :
       {"", "<html>no</html>", "{\"error\": 1}", "<Error><Code>cut", "\xff\xfe"})
    EXPECT_EQ(ParseS3Error(text).code, "") << text;
  EXPECT_EQ(ParseS3Error(std::string(kS3ErrorBytesMax + 1, ' ')).code, "");
}

TEST(S3Error, LongMessagesAreCut) {
  const S3Error error = ParseS3Error(ErrorXml("AccessDenied", std::string(5000, 'x')));
  EXPECT_EQ(error.message.size(), 300U);
}

TEST(S3Error, CodesSayWhatToDo) {
  struct Case {
    int http_status;
    std::string code;
    Code expected;
    std::string advice;
  };
  for (const Case& c :
       {Case{404, "NoSuchKey", Code::kNotFound, "no such object"},
        Case{404, "NoSuchBucket", Code::kNotFound, "check the bucket's name"},
        Case{403, "AccessDenied", Code::kPermissionDenied,
             "the keys, or requests without keys, need s3:GetObject and s3:ListBucket"},
        Case{403, "SignatureDoesNotMatch", Code::kPermissionDenied, "check the secret access key"},
        Case{403, "InvalidAccessKeyId", Code::kPermissionDenied, "check the access key ID"},
        Case{404, "XAdminUserNotFound", Code::kPermissionDenied, "check the access key ID"},
        Case{403, "RequestTimeTooSkewed", Code::kPermissionDenied, "this machine's clock"},
        Case{403, "InvalidObjectState", Code::kPermissionDenied, "the object is archived"},
        Case{400, "InvalidRequest", Code::kInvalidArgument, "give sseCustomerKey"},
        Case{400, "ExpiredToken", Code::kPermissionDenied, "the session token has expired"},
        Case{400, "ExpiredTokenException", Code::kPermissionDenied,
             "the session token has expired"},
        Case{400, "RequestTimeout", Code::kUnavailable, "the request did not arrive in time"},
        Case{503, "SlowDown", Code::kUnavailable, "fewer requests at a time"},
        Case{500, "InternalError", Code::kUnavailable, "the server cannot answer now"},
        Case{412, "PreconditionFailed", Code::kConflict,
             "the object changed since the manifest was made. Index the dataset again: with "
             "`optcache up --reindex`, or, in a cluster, by the annotation optcache.io/reindex"},
        Case{416, "InvalidRange", Code::kConflict, "the object changed"},
        Case{501, "NotImplemented", Code::kInvalidArgument,
             "the server does not know this request"},
        Case{400, "InvalidArgument", Code::kInvalidArgument, "is this an S3 server"}}) {
    const Status status =
        S3Status({.http_status = c.http_status, .error = ParseS3Error(ErrorXml(c.code))}, "a.jpg");
    EXPECT_EQ(status.code(), c.expected) << c.code;
    EXPECT_THAT(status.message(), HasSubstr("a.jpg: HTTP " + std::to_string(c.http_status) + ": " +
                                            c.code + ": Because: " + c.advice));
  }
}

TEST(S3Error, WithoutABodyTheStatusCounts) {
  struct Case {
    int http_status;
    Code expected;
  };
  for (const Case c : {Case{301, Code::kInvalidArgument}, Case{400, Code::kInvalidArgument},
                       Case{401, Code::kPermissionDenied}, Case{403, Code::kPermissionDenied},
                       Case{404, Code::kNotFound}, Case{408, Code::kUnavailable},
                       Case{412, Code::kConflict}, Case{416, Code::kConflict},
                       Case{429, Code::kUnavailable}, Case{501, Code::kInvalidArgument},
                       Case{503, Code::kUnavailable}, Case{505, Code::kInvalidArgument}})
    EXPECT_EQ(S3Status({.http_status = c.http_status}, "a").code(), c.expected) << c.http_status;
}

S3Error ErrorNamed(std::string code) {
  return {.code = std::move(code), .message = "", .region = ""};
}

TEST(S3Error, AnotherRegionIsNamed) {
  const auto says_region =
      HasSubstr("set the source's region to it, as region=eu-central-1 in an address");
  const S3Error malformed = {
      .code = "AuthorizationHeaderMalformed", .message = "", .region = "eu-central-1"};
  EXPECT_THAT(S3Status({.http_status = 400, .error = malformed, .asked_region = "us-east-1"}, "a")
                  .message(),
              says_region);
  S3Refusal moved = {.http_status = 301,
                     .error = ErrorNamed("PermanentRedirect"),
                     .bucket_region = "eu-central-1",
                     .asked_region = "us-east-1"};
  EXPECT_THAT(S3Status(moved, "a").message(), says_region);
  // A HEAD has no body.
  moved.http_status = 400;
  moved.error = {};
  EXPECT_THAT(S3Status(moved, "a").message(), says_region);
  EXPECT_EQ(S3Status(moved, "a").code(), Code::kInvalidArgument);
  // Servers tell the region with other errors, too.
  moved.http_status = 403;
  moved.error = ErrorNamed("AccessDenied");
  EXPECT_THAT(S3Status(moved, "a").message(), Not(says_region));
}

TEST(S3Error, TheRegionThatWasAskedForIsNoAdvice) {
  struct Case {
    int http_status;
    std::string code;
    std::string says;
  };
  for (const Case& c :
       {Case{400, "AuthorizationHeaderMalformed", "check region, endpoint and access key ID"},
        Case{307, "TemporaryRedirect", "the bucket is elsewhere: check region and endpoint"},
        // As S3 answers the HEAD of an object that is encrypted with a key that was not given.
        Case{400, "", "sseCustomerKey"}}) {
    const Status status = S3Status({.http_status = c.http_status,
                                    .error = ErrorNamed(c.code),
                                    .bucket_region = "eu-central-1",
                                    .asked_region = "eu-central-1"},
                                   "a");
    EXPECT_THAT(status.message(), Not(HasSubstr("set region="))) << c.code;
    EXPECT_THAT(status.message(), HasSubstr(c.says)) << c.code;
  }
}

TEST(S3Error, KeysAreNotRepeated) {
  const S3Error error = ParseS3Error(
      "<Error><Code>SignatureDoesNotMatch</Code><Message>No.</Message>"
      "<AWSAccessKeyId>AKIA</AWSAccessKeyId><StringToSign>secret</StringToSign></Error>");
  const std::string message = S3Status({.http_status = 403, .error = error}, "a").message();
  EXPECT_THAT(message, Not(HasSubstr("AKIA")));
  EXPECT_THAT(message, Not(HasSubstr("StringToSign")));
}

}  // namespace
}  // namespace optcache::storage
