#include "sidecar/s3/s3_request.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

S3Request Parsed(std::string_view target, std::string_view method = "GET") {
  auto request = ParseS3Request(method, target);
  EXPECT_TRUE(request.has_value()) << target << ": " << request.error().message;
  return request.value_or(S3Request{});
}

S3Error Refused(std::string_view target, std::string_view method = "GET") {
  auto request = ParseS3Request(method, target);
  EXPECT_FALSE(request.has_value()) << target;
  return request ? S3Error{} : request.error();
}

TEST(S3Request, IsOfAnObject) {
  const S3Request request = Parsed("/data/a/b%20c+d%2Fe?x-id=GetObject");
  EXPECT_EQ(request.operation, S3Operation::kGetObject);
  EXPECT_EQ(request.bucket, "data");
  EXPECT_EQ(request.key, "a/b c+d/e");
  EXPECT_EQ(Parsed("/data/a", "HEAD").operation, S3Operation::kHeadObject);
  EXPECT_EQ(Parsed("/data//a/").key, "/a/");
}

TEST(S3Request, IsOfABucketOrOfAll) {
  EXPECT_EQ(Parsed("/").operation, S3Operation::kListBuckets);
  EXPECT_EQ(Parsed("/data", "HEAD").operation, S3Operation::kHeadBucket);
  EXPECT_EQ(Parsed("/data/?location").operation, S3Operation::kBucketLocation);
  EXPECT_EQ(Parsed("/data?versioning=").operation, S3Operation::kBucketVersioning);
  EXPECT_EQ(Parsed("/data").operation, S3Operation::kListObjects);
  EXPECT_EQ(Parsed("/data/?list-type=2").operation, S3Operation::kListObjectsV2);
}

TEST(S3Request, SaysWhichPartOfAListing) {
  const ListQuery list =
      Parsed(
          "/d?list-type=2&prefix=a%2Fb&delimiter=%2F&max-keys=7&encoding-type=url&"
          "start-after=a+b&fetch-owner=true")
          .list;
  EXPECT_EQ(list.prefix, "a/b");
  EXPECT_EQ(list.delimiter, "/");
  EXPECT_EQ(list.max_keys, 7U);
  EXPECT_TRUE(list.encodes_keys);
  EXPECT_EQ(list.after, "a b");
  EXPECT_FALSE(list.goes_on);
  EXPECT_EQ(Parsed("/d?max-keys=9999").list.max_keys, kListMax);
  EXPECT_EQ(Parsed("/d?marker=k").list.after, "k");
}

TEST(S3Request, ReadsItsOwnTokens) {
  for (const std::string key : {"a", "a/b c?&=+", "\xff\xfe\xfb", ""}) {
    const ListQuery list = Parsed("/d?list-type=2&continuation-token=" + TokenAfter(key)).list;
    EXPECT_EQ(list.after, key);
    EXPECT_TRUE(list.goes_on);
  }
  const std::string long_key(2 * kKeyBytesMax, 'k');
  EXPECT_EQ(Parsed("/d?list-type=2&continuation-token=" + TokenAfter(long_key)).list.after,
            long_key)
      << "a listing goes on after any key that it has";
  EXPECT_EQ(Refused("/d?list-type=2&continuation-token=*").code, "InvalidArgument");
}

TEST(S3Request, OfAWriteIsRefusedWithWhatToDo) {
  for (const char* const method : {"PUT", "POST", "DELETE", "PATCH"}) {
    const S3Error error = Refused("/data/key", method);
    EXPECT_EQ(error.status, 403);
    EXPECT_EQ(error.code, "AccessDenied");
    EXPECT_NE(error.message.find("endpoint_url="), std::string::npos);
  }
  EXPECT_EQ(Refused("/data/key", "OPTIONS").status, 405);
}

TEST(S3Request, PassesOverSignatures) {
  EXPECT_EQ(Parsed("/d/k?X-Amz-Signature=abc&X-Amz-Date=1").operation, S3Operation::kGetObject);
  EXPECT_EQ(Parsed("/d?X-Amz-Signature=abc&list-type=2").operation, S3Operation::kListObjectsV2);
}

TEST(S3Request, PassesOverPresignedQueriesOfBothVersions) {
  const std::string fourth =
      "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=id%2F20260101%2Fus-east-1%2Fs3%2F"
      "aws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&"
      "X-Amz-Security-Token=a%2Bb%3D%3D&X-Amz-Signature=00ff";
  const std::string second =
      "AWSAccessKeyId=id&Signature=a%2Fb%2Bc%3D&Expires=1700000000&x-amz-security-token=t";
  for (const std::string& signature : {fourth, second}) {
    EXPECT_EQ(Parsed("/d/k?" + signature).operation, S3Operation::kGetObject);
    EXPECT_EQ(Parsed("/d?" + signature).operation, S3Operation::kListObjects);
    EXPECT_EQ(Parsed("/d?list-type=2&" + signature).operation, S3Operation::kListObjectsV2);
    EXPECT_TRUE(Parsed("/?" + signature).presigned);
    EXPECT_EQ(Refused("/d/k?" + signature, "PUT").code, "AccessDenied");
  }
  EXPECT_FALSE(Parsed("/").presigned);
  EXPECT_EQ(Parsed("/d/k?X-Amz-Signature&Signature=&Expires=never").key, "k") << "malformed";
}

TEST(S3Request, TakesTheBucketFromTheHost) {
  const auto parsed = [](std::string_view target, std::string_view method = "GET") {
    return ParseS3Request(method, target, "my.data").value();
  };
  EXPECT_EQ(parsed("/a/b%20c").bucket, "my.data");
  EXPECT_EQ(parsed("/a/b%20c").key, "a/b c");
  EXPECT_EQ(parsed("//a").key, "/a");
  EXPECT_EQ(parsed("/?list-type=2&prefix=a").operation, S3Operation::kListObjectsV2);
  EXPECT_EQ(parsed("/", "HEAD").operation, S3Operation::kHeadBucket);
}

TEST(S3Request, OfAPartIsOfTheOnlyOne) {
  EXPECT_TRUE(Parsed("/d/k?partNumber=1").first_part);
  EXPECT_FALSE(Parsed("/d/k").first_part);
  EXPECT_EQ(Refused("/d/k?partNumber=2").code, "InvalidPartNumber");
  EXPECT_EQ(Refused("/d/k?partNumber=2").status, 416);
  for (const char* const number : {"0", "10001", "-1", "one", "", "99999999999999999999"})
    EXPECT_EQ(Refused(std::string("/d/k?partNumber=") + number).code, "InvalidArgument") << number;
}

TEST(S3Request, NamesTheHeadersThatItOverrides) {
  const S3Request request = Parsed(
      "/d/k?response-content-type=text%2Fplain&response-cache-control=no-store&"
      "response-content-disposition=attachment%3B%20filename%3D%22a+b%22&"
      "response-content-encoding=gzip&response-content-language=de&response-expires=0");
  EXPECT_EQ(request.overrides,
            (net::HttpHeaders{{"Cache-Control", "no-store"},
                              {"Content-Disposition", "attachment; filename=\"a b\""},
                              {"Content-Encoding", "gzip"},
                              {"Content-Language", "de"},
                              {"Content-Type", "text/plain"},
                              {"Expires", "0"}}));
  EXPECT_TRUE(Parsed("/d/k").overrides.empty());
}

TEST(S3Request, OverridesNothingBesideAHeader) {
  for (const char* const value : {"a%0D%0ASet-Cookie:b", "a%0Ab", "%00", "%7F", "%C3%A4"}) {
    const S3Error error = Refused(std::string("/d/k?response-content-type=") + value);
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.code, "InvalidArgument") << value;
  }
}

TEST(S3Request, SaysWhatNobodyKnowsHere) {
  EXPECT_EQ(Refused("/d/k?tagging").code, "NotImplemented");
  EXPECT_EQ(Refused("/d/k?partNumber=1&uploadId=2").code, "NotImplemented");
  EXPECT_EQ(Refused("/d/k?uploads").code, "NotImplemented");
  EXPECT_EQ(Refused("/d/k?acl").code, "NotImplemented");
  EXPECT_EQ(Refused("/d?uploads").code, "NotImplemented");
  EXPECT_EQ(Refused("/d?policy").code, "NotImplemented");
  EXPECT_EQ(Refused("/d/k?versionId=7").code, "NoSuchVersion");
  EXPECT_EQ(Parsed("/d/k?versionId=null").key, "k");
}

TEST(S3Request, HasLimits) {
  EXPECT_EQ(Parsed("/d/" + std::string(kKeyBytesMax, 'k')).key.size(), kKeyBytesMax);
  EXPECT_EQ(Refused("/d/" + std::string(kKeyBytesMax + 1, 'k')).code, "KeyTooLongError");
  std::string query = "/d?";
  for (std::size_t i = 0; i <= kQueryFieldsMax; ++i)
    query += "a=b&";
  EXPECT_EQ(Refused(query).code, "InvalidArgument");
  for (const char* const target : {"", "d/k", "http://host/d", "/d/%", "/d/%zz", "/%g", "/d?a=%"})
    EXPECT_EQ(Refused(target).code, "InvalidURI") << target;
  EXPECT_EQ(Refused("//key").code, "InvalidBucketName");
  EXPECT_EQ(Refused("/d?max-keys=-1").code, "InvalidArgument");
  EXPECT_EQ(Refused("/d?max-keys=").code, "InvalidArgument");
  EXPECT_EQ(Refused("/d?encoding-type=base64").code, "InvalidArgument");
}

}  // namespace
}  // namespace optcache::sidecar
