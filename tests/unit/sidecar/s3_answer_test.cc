#include "sidecar/s3/s3_answer.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "unit/sidecar/s3_world.h"

namespace optcache::sidecar {
namespace {

class S3AnswerTest : public testing::Test {
 protected:
  S3AnswerTest() { world_.Add("data", "train/", {"b", "a"}); }
  S3Answer Answer(std::string_view target, const net::HttpHeaders& headers = {},
                  std::string_view method = "GET") {
    const auto request = ParseS3Request(method, target);
    EXPECT_TRUE(request.has_value()) << target;
    return AnswerS3(request.value_or(S3Request{}), headers, world_.keys);
  }
  static std::string Header(const S3Answer& answer, std::string_view name) {
    return std::string(net::FindHeader(answer.headers, name).value_or("none"));
  }

  S3World world_;
};

TEST(S3Answer, AReadThatFailedSaysWhetherToAskAgain) {
  const auto error = [](Code code) { return ErrorOfRead({code, "why"}); };
  EXPECT_EQ(error(Code::kNotFound), (S3Error{404, "NoSuchKey", "why"}));
  EXPECT_EQ(error(Code::kConflict), (S3Error{412, "PreconditionFailed", "why"}));
  EXPECT_EQ(error(Code::kPermissionDenied), (S3Error{403, "AccessDenied", "why"}));
  EXPECT_EQ(error(Code::kInvalidArgument), (S3Error{400, "InvalidRequest", "why"}));
  for (const Code code : {Code::kUnavailable, Code::kResourceExhausted, Code::kDeadlineExceeded})
    EXPECT_EQ(error(code), (S3Error{503, "SlowDown", "why"}));
  for (const Code code : {Code::kDataLoss, Code::kInternal, Code::kCancelled})
    EXPECT_EQ(error(code), (S3Error{500, "InternalError", "why"}));
}

TEST(S3Answer, WhatTheServerAnswersByItselfIsAnErrorOfS3) {
  EXPECT_EQ(ErrorOfServer(400, "why"), (S3Error{400, "InvalidRequest", "why"}));
  EXPECT_EQ(ErrorOfServer(408, "why"), (S3Error{408, "RequestTimeout", "why"}));
  EXPECT_EQ(ErrorOfServer(413, "why"), (S3Error{413, "EntityTooLarge", "why"}));
  EXPECT_EQ(ErrorOfServer(431, "why"), (S3Error{431, "RequestHeaderSectionTooLarge", "why"}));
  EXPECT_EQ(ErrorOfServer(500, "why"), (S3Error{500, "InternalError", "why"}));
  EXPECT_EQ(ErrorOfServer(503, "why"), (S3Error{503, "SlowDown", "why"}));
}

TEST_F(S3AnswerTest, IsTheWholeObject) {
  const S3Answer answer = Answer("/data/train/a");
  EXPECT_EQ(answer.status, 200);
  ASSERT_TRUE(answer.part);
  EXPECT_EQ(answer.part->id, 1U);
  EXPECT_EQ(answer.part->bytes, (ByteRange{.first = 0, .length = 10}));
  EXPECT_EQ(Header(answer, "ETag"), "\"a\"");
  EXPECT_EQ(Header(answer, "Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(Header(answer, "Accept-Ranges"), "bytes");
}

TEST_F(S3AnswerTest, IsARange) {
  const S3Answer answer = Answer("/data/train/a", {{"range", "bytes=2-4"}});
  EXPECT_EQ(answer.status, 206);
  EXPECT_EQ(answer.part->bytes, (ByteRange{.first = 2, .length = 3}));
  EXPECT_EQ(Header(answer, "Content-Range"), "bytes 2-4/10");
  const S3Answer beyond = Answer("/data/train/a", {{"Range", "bytes=10-"}});
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(Header(beyond, "Content-Range"), "bytes */10");
  EXPECT_EQ(beyond.error->code, "InvalidRange");
}

TEST_F(S3AnswerTest, IsAHeadAlone) {
  const S3Answer answer = Answer("/data/train/a", {}, "HEAD");
  EXPECT_EQ(answer.length_of_head, 10U);
  EXPECT_FALSE(answer.part);
  EXPECT_EQ(Answer("/data", {}, "HEAD").status, 200);
  EXPECT_EQ(Header(Answer("/data", {}, "HEAD"), "x-amz-bucket-region"), "eu-test-1");
  EXPECT_EQ(Answer("/nobody", {}, "HEAD").status, 404);
}

TEST_F(S3AnswerTest, KeepsConditions) {
  EXPECT_EQ(Answer("/data/train/a", {{"If-None-Match", "\"x\", \"a\""}}).status, 304);
  EXPECT_EQ(Answer("/data/train/a", {{"If-None-Match", "*"}}).status, 304);
  EXPECT_EQ(Answer("/data/train/a", {{"If-None-Match", "\"b\""}}).status, 200);
  EXPECT_EQ(Answer("/data/train/a", {{"If-Match", "\"a\""}}).status, 200);
  EXPECT_EQ(Answer("/data/train/a", {{"If-Match", "a"}}).status, 200) << "as some clients write it";
  EXPECT_EQ(Answer("/data/train/a", {{"If-Match", "\"b\""}}).status, 412);
  EXPECT_EQ(Answer("/data/train/a", {{"If-Range", "\"b\""}, {"Range", "bytes=0-1"}}).status, 200);
  EXPECT_EQ(Answer("/data/train/a", {{"If-Range", "\"a\""}, {"Range", "bytes=0-1"}}).status, 206);
}

TEST_F(S3AnswerTest, WhatIsNotModifiedKeepsItsVersionAndHasNoBody) {
  for (const char* const method : {"GET", "HEAD"}) {
    const S3Answer answer = Answer("/data/train/a", {{"If-None-Match", "\"a\""}}, method);
    EXPECT_EQ(answer.status, 304);
    EXPECT_EQ(Header(answer, "ETag"), "\"a\"");
    EXPECT_EQ(Header(answer, "Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(answer.body, "");
    EXPECT_FALSE(answer.part);
    EXPECT_FALSE(answer.length_of_head);
  }
}

TEST_F(S3AnswerTest, ConditionsGoBeforeRanges) {
  const std::pair<std::string, std::string> beyond = {"Range", "bytes=10-"};
  EXPECT_EQ(Answer("/data/train/a", {beyond, {"If-None-Match", "\"a\""}}).status, 304);
  EXPECT_EQ(Answer("/data/train/a", {beyond, {"If-Match", "\"b\""}}).status, 412);
  EXPECT_EQ(Answer("/data/train/a", {beyond, {"If-Range", "\"b\""}}).status, 200);
  EXPECT_EQ(Answer("/data/train/a", {beyond}).status, 416);
}

TEST_F(S3AnswerTest, KeepsConditionsOfTime) {
  const char* const before = "Sun, 06 Nov 1994 08:49:36 GMT";
  const char* const then = "Sun, 06 Nov 1994 08:49:37 GMT";
  EXPECT_EQ(Answer("/data/train/a", {{"If-Modified-Since", then}}).status, 304);
  EXPECT_EQ(Answer("/data/train/a", {{"If-Modified-Since", before}}).status, 200);
  EXPECT_EQ(Answer("/data/train/a", {{"If-Unmodified-Since", then}}).status, 200);
  const S3Answer failed = Answer("/data/train/a", {{"If-Unmodified-Since", before}});
  EXPECT_EQ(failed.status, 412);
  EXPECT_TRUE(failed.error->message.ends_with("than If-Unmodified-Since names"));
}

TEST_F(S3AnswerTest, HasOnePartOfAnUpload) {
  const S3Answer answer = Answer("/data/train/a?partNumber=1");
  EXPECT_EQ(answer.status, 206);
  EXPECT_EQ(Header(answer, "Content-Range"), "bytes 0-9/10");
  EXPECT_EQ(Answer("/data/train/a?partNumber=1", {}, "HEAD").length_of_head, 10U);
}

TEST_F(S3AnswerTest, OverridesHeadersOfSignedRequests) {
  const std::string target = "/data/train/a?response-content-type=text/plain&response-expires=0";
  const net::HttpHeaders of_part = {{"Authorization", "AWS id:signature"}, {"Range", "bytes=0-1"}};
  for (const char* const method : {"GET", "HEAD"}) {
    const S3Answer whole = Answer(target + "&X-Amz-Signature=a", {}, method);
    EXPECT_EQ(whole.status, 200);
    const S3Answer part = Answer(target, of_part, method);
    EXPECT_EQ(part.status, 206);
    for (const S3Answer& answer : {whole, part}) {
      EXPECT_EQ(Header(answer, "Expires"), "0");
      EXPECT_EQ(
          std::ranges::count(answer.headers, "Content-Type", &net::HttpHeaders::value_type::first),
          1);
      EXPECT_EQ(Header(answer, "Content-Type"), "text/plain");
      EXPECT_EQ(Header(answer, "Content-Security-Policy"), "sandbox");
      EXPECT_EQ(Header(answer, "X-Content-Type-Options"), "nosniff");
    }
  }
  EXPECT_EQ(Header(Answer("/data/train/a"), "Content-Type"), "binary/octet-stream");
}

TEST_F(S3AnswerTest, OverridesNoHeadersOfUnsignedRequestsAndErrors) {
  const S3Answer unsigned_one = Answer("/data/train/a?response-content-type=text/html");
  EXPECT_EQ(unsigned_one.status, 400);
  EXPECT_EQ(unsigned_one.error->code, "InvalidRequest");
  const S3Answer none = Answer("/data/none?response-content-type=text/html&X-Amz-Signature=a");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(Header(none, "Content-Type"), "application/xml");
}

TEST_F(S3AnswerTest, ShowsAPageToPeopleAndBucketsToLibraries) {
  const S3Answer page = Answer("/", {{"Accept", "text/html"}, {"User-Agent", "curl"}});
  EXPECT_EQ(Header(page, "Content-Type"), "text/plain; charset=utf-8");
  EXPECT_NE(page.body.find("  /data\n"), std::string::npos) << page.body;
  for (const net::HttpHeaders& headers :
       std::vector<net::HttpHeaders>{{{"Authorization", "AWS id:signature"}},
                                     {{"X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD"}},
                                     {{"amz-sdk-invocation-id", "1"}}})
    EXPECT_NE(Answer("/", headers).body.find("<ListAllMyBucketsResult"), std::string::npos);
  EXPECT_NE(Answer("/?X-Amz-Signature=a").body.find("<ListAllMyBucketsResult"), std::string::npos);
  EXPECT_NE(Answer("/?AWSAccessKeyId=a&Signature=b&Expires=1").body.find("<ListAllMyBuckets"),
            std::string::npos);
}

TEST_F(S3AnswerTest, OfAnotherMethodSaysWhichThereAre) {
  const S3Answer answer = AnswerWithError(ParseS3Request("OPTIONS", "/").error());
  EXPECT_EQ(Header(answer, "Allow"), "GET, HEAD");
}

TEST_F(S3AnswerTest, SaysWhatThereIsNot) {
  const S3Answer key = Answer("/data/train/c");
  EXPECT_EQ(key.status, 404);
  EXPECT_EQ(key.error->code, "NoSuchKey");
  const S3Answer bucket = Answer("/nobody/train/a");
  EXPECT_EQ(bucket.status, 404);
  EXPECT_EQ(bucket.error->code, "NoSuchBucket");
}

TEST_F(S3AnswerTest, ServesMembersOfArchivesAndNotTheArchives) {
  world_.AddArchives("members", dataset::Layout::kMembers);
  world_.AddArchives("groups", dataset::Layout::kGroups);
  EXPECT_EQ(Answer("/members/one.tar/a.jpg").status, 200);
  for (const char* const target : {"/members/one.tar", "/groups/one.tar", "/groups?list-type=2"}) {
    const S3Answer answer = Answer(target);
    EXPECT_EQ(answer.status, 501) << target;
    EXPECT_NE(answer.error->message.find("format Files"), std::string::npos);
  }
}

TEST_F(S3AnswerTest, ListsBucketsAndWhatLiesThere) {
  EXPECT_NE(Answer("/?X-Amz-Signature=a").body.find("<Name>data</Name>"), std::string::npos);
  EXPECT_NE(Answer("/data?list-type=2").body.find("<Key>train/b</Key>"), std::string::npos);
  EXPECT_NE(Answer("/data?location").body.find("eu-test-1"), std::string::npos);
  EXPECT_NE(Answer("/data?versioning").body.find("VersioningConfiguration"), std::string::npos);
}

}  // namespace
}  // namespace optcache::sidecar
