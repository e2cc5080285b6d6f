#include "sidecar/s3_request.h"

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

TEST(S3Request, SaysWhatNobodyKnowsHere) {
  EXPECT_EQ(Refused("/d/k?tagging").code, "NotImplemented");
  EXPECT_EQ(Refused("/d/k?partNumber=1").code, "NotImplemented");
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
}

}  // namespace
}  // namespace optcache::sidecar
