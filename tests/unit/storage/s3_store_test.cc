#include "storage/s3_store.h"

#include <cstdlib>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/read_waiter.h"
#include "support/scripted_http_server.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kListQuery = "?list-type=2&encoding-type=url&max-keys=1000";
const ScriptedAnswer kExpired = {.status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"};

class S3StoreTest : public testing::Test {
 protected:
  static std::optional<std::string> ExampleKeys(const char* name) {
    if (std::string_view(name) == "AWS_ACCESS_KEY_ID") return "AKIAEXAMPLE";
    if (std::string_view(name) == "AWS_SECRET_ACCESS_KEY") return "secret";
    return std::nullopt;
  }
  static std::optional<std::string> Nothing(const char* /*name*/) { return std::nullopt; }

  std::unique_ptr<S3Store> Open(const std::string& more = "",
                                S3StoreOptions options = {.address = {}, .environment = Nothing}) {
    options.address =
        ParseS3Address(fmt::format("s3://bucket/data?endpoint={}{}", server_.url(), more), Nothing)
            .value();
    return S3Store::Open(std::move(options)).value();
  }
  static Deadline Soon() { return Deadline::After(SystemClock(), std::chrono::minutes(1)); }
  // A request for the whole object that fills into_.
  ReadRequest Whole(const std::string& object, size_t size, std::string etag = "") {
    into_.assign(size, '.');
    return {.object = object,
            .offset = 0,
            .destination = std::as_writable_bytes(std::span(into_)),
            .object_size = size,
            .validator = {.modified_ns = 0, .etag = std::move(etag)},
            .deadline = Soon()};
  }
  ReadRequest Part(const std::string& object, ByteCount offset, size_t length, ByteCount size) {
    ReadRequest request = Whole(object, length);
    request.offset = offset;
    request.object_size = size;
    return request;
  }
  ReadOutcome Run(ReadRequest request) { return ReadWaiter().Run(*store_, std::move(request)); }
  void Answer(const std::string& path, ScriptedAnswer answer) {
    server_.AnswerNext("bucket/data/" + path, std::move(answer));
  }
  std::map<std::string, std::string> LastHeaders() { return server_.requests().back().headers; }

  ScriptedHttpServer server_;
  std::string into_;
  std::unique_ptr<S3Store> store_ = Open("", {.address = {}, .environment = ExampleKeys});
};

TEST_F(S3StoreTest, ReadsWholeObjectsSigned) {
  server_.Put("bucket/data/a", "0123456789", "\"v1\"");
  EXPECT_TRUE(Run(Whole("a", 10, "\"v1\"")).status.ok());
  EXPECT_EQ(into_, "0123456789");
  const auto headers = LastHeaders();
  EXPECT_EQ(headers.at("if-match"), "\"v1\"");
  EXPECT_FALSE(headers.contains("range"));
  EXPECT_EQ(headers.at("x-amz-checksum-mode"), "ENABLED");
  EXPECT_THAT(headers.at("authorization"), StartsWith("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/"));
  EXPECT_THAT(headers.at("authorization"),
              HasSubstr("SignedHeaders=host;x-amz-checksum-mode;x-amz-content-sha256;x-amz-date,"));
}

TEST_F(S3StoreTest, ReadsRanges) {
  server_.Put("bucket/data/a", "0123456789");
  EXPECT_TRUE(Run(Part("a", 3, 4, 10)).status.ok());
  EXPECT_EQ(into_, "3456");
  EXPECT_EQ(LastHeaders().at("range"), "bytes=3-6");
}

TEST_F(S3StoreTest, AwkwardKeysAreEncoded) {
  const std::string name = "a b+c?d=e%20f\"g'h/\xc3\xa9&;:@.jpg";
  server_.Put("bucket/data/" + name, "x");
  EXPECT_TRUE(Run(Whole(name, 1)).status.ok());
  EXPECT_EQ(server_.requests().back().target,
            "/bucket/data/a%20b%2Bc%3Fd%3De%2520f%22g%27h/%C3%A9%26%3B%3A%40.jpg");
}

TEST_F(S3StoreTest, WithoutKeysRequestsAreNotSigned) {
  store_ = Open();
  server_.Put("bucket/data/a", "x");
  EXPECT_TRUE(Run(Whole("a", 1)).status.ok());
  EXPECT_FALSE(LastHeaders().contains("authorization"));
  EXPECT_FALSE(LastHeaders().contains("x-amz-date"));
}

TEST_F(S3StoreTest, RequesterPaysIsSaidAndSigned) {
  store_ = Open("&requester-pays=true", {.address = {}, .environment = ExampleKeys});
  server_.Put("bucket/data/a", "x");
  EXPECT_TRUE(Run(Whole("a", 1)).status.ok());
  EXPECT_EQ(LastHeaders().at("x-amz-request-payer"), "requester");
  EXPECT_THAT(LastHeaders().at("authorization"), HasSubstr(";x-amz-request-payer,"));
  EXPECT_TRUE(store_->Stat("a", Soon()));
  EXPECT_EQ(LastHeaders().at("x-amz-request-payer"), "requester");
}

TEST_F(S3StoreTest, ErrorsSayWhatS3Says) {
  const auto xml = [](const std::string& code) {
    return "<Error><Code>" + code + "</Code><Message>Because.</Message></Error>";
  };
  Answer("a", {.status = 404, .body = xml("NoSuchKey")});
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kNotFound);
  Answer("a", {.status = 403, .body = xml("SignatureDoesNotMatch")});
  const Status denied = Run(Whole("a", 1)).status;
  EXPECT_EQ(denied.code(), Code::kPermissionDenied);
  EXPECT_THAT(denied.message(),
              HasSubstr("a bytes 0-0: HTTP 403: SignatureDoesNotMatch: Because: check the secret"));
  Answer("a", {.status = 412, .body = xml("PreconditionFailed")});
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kConflict);
}

TEST_F(S3StoreTest, ExpiredKeysAreToldApart) {
  Answer("a", kExpired);
  const ReadOutcome outcome = Run(Whole("a", 1));
  EXPECT_EQ(outcome.status.code(), Code::kPermissionDenied);
  EXPECT_TRUE(outcome.keys_expired);
  Answer("a", {.status = 403, .body = "<Error><Code>AccessDenied</Code></Error>"});
  EXPECT_FALSE(Run(Whole("a", 1)).keys_expired);
  // A page of a listing is asked for again.
  const std::string list = fmt::format("bucket/{}&prefix=data/", kListQuery);
  server_.AnswerNext(list, kExpired);
  server_.AnswerNext(list,
                     {.body = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>"
                              "data/c</Key><Size>1</Size></Contents></ListBucketResult>"});
  EXPECT_EQ(store_->List(Soon(), {})->objects.size(), 1U);
}

TEST_F(S3StoreTest, AListingWithExpiredKeysEndsAsARefusal) {
  store_ = Open("", {.address = {}, .first_patience = Duration::zero(), .environment = Nothing});
  const std::string list = fmt::format("bucket/{}&prefix=data/", kListQuery);
  server_.AnswerNext(list, kExpired);
  const Status expired = store_->List(Soon(), {}).error();
  EXPECT_EQ(expired.code(), Code::kPermissionDenied) << "an index Job says SourceForbidden";
  EXPECT_THAT(expired.message(), HasSubstr("ExpiredToken"));
  server_.AnswerNext(list, {.status = 503});
  EXPECT_EQ(store_->List(Soon(), {}).error().code(), Code::kUnavailable);
}

TEST_F(S3StoreTest, SlowDownIsUnavailableWithItsWait) {
  Answer("a", {.status = 503,
               .headers = {"Retry-After: 7"},
               .body = "<Error><Code>SlowDown</Code></Error>"});
  const ReadOutcome outcome = Run(Whole("a", 1));
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_EQ(outcome.retry_after, std::chrono::seconds(7));
}

TEST_F(S3StoreTest, RedirectionsAreNotFollowedButExplained) {
  Answer("a", {.status = 301,
               .headers = {"x-amz-bucket-region: eu-central-1", "Location: /elsewhere"},
               .body = "<Error><Code>PermanentRedirect</Code></Error>"});
  const Status status = Run(Whole("a", 1)).status;
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("region=eu-central-1"));
  EXPECT_EQ(server_.requests().size(), 1U);
  Answer("a", {.status = 301, .headers = {"x-amz-bucket-region: eu-central-1"}});
  EXPECT_THAT(store_->Stat("a", Soon()).error().message(), HasSubstr("region=eu-central-1"));
}

TEST_F(S3StoreTest, ItsOwnRegionIsNoAdvice) {
  store_ = Open("&region=eu-central-1", {.address = {}, .environment = ExampleKeys});
  Answer("a", {.status = 400, .headers = {"x-amz-bucket-region: eu-central-1"}});
  const Status status = store_->Stat("a", Soon()).error();
  EXPECT_THAT(status.message(), Not(HasSubstr("set region=")));
  EXPECT_THAT(status.message(), HasSubstr("sseCustomerKey"));
}

TEST_F(S3StoreTest, StatsByHead) {
  server_.Put("bucket/data/a", "0123", "\"v1\"");
  const ObjectInfo info = store_->Stat("a", Soon()).value();
  EXPECT_EQ(info.size, 4U);
  EXPECT_EQ(info.validator.etag, "\"v1\"");
  EXPECT_EQ(server_.requests().at(0).method, "HEAD");
  EXPECT_EQ(store_->Stat("gone", Soon()).error().code(), Code::kNotFound);
}

TEST_F(S3StoreTest, Lists) {
  server_.AnswerNext(
      fmt::format("bucket/{}&prefix=data/", kListQuery),
      {.body = "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
               "<Contents><Key>data/b/1+2</Key><Size>5</Size><ETag>\"e\"</ETag></Contents>"
               "<Contents><Key>data/c</Key><Size>0</Size><ETag>\"f\"</ETag></Contents>"
               "</ListBucketResult>"});
  const ObjectListing listing = store_->List(Soon(), {}).value();
  ASSERT_EQ(listing.objects.size(), 2U);
  EXPECT_EQ(listing.objects[0].path, "b/1 2");
  EXPECT_EQ(listing.objects[0].info->size, 5U);
  EXPECT_EQ(listing.objects[0].info->validator.etag, "\"e\"");
  EXPECT_EQ(listing.top_folders, std::vector<std::string>{"b"});
  EXPECT_TRUE(LastHeaders().contains("authorization"));
  EXPECT_FALSE(LastHeaders().contains("x-amz-checksum-mode"));
}

TEST_F(S3StoreTest, ListsFromWhereThePageBeforeEnded) {
  const auto page = [](const std::string& key, bool more) {
    return ScriptedAnswer{
        .body = fmt::format("<ListBucketResult><IsTruncated>{}</IsTruncated><Contents><Key>{}"
                            "</Key><Size>1</Size></Contents></ListBucketResult>",
                            more, key)};
  };
  store_ = Open("", {.address = {}, .concurrent_lists_max = 1, .environment = ExampleKeys});
  const std::string first = fmt::format("bucket/{}&prefix=data/", kListQuery);
  server_.AnswerNext(first, page("data/a+ b", true));
  server_.AnswerNext(first + "&start-after=data/a+ b", page("data/c", false));
  EXPECT_EQ(store_->List(Soon(), {})->objects.size(), 2U);
}

TEST_F(S3StoreTest, AnEmptyPageIsFollowedByItsToken) {
  const std::string first = fmt::format("bucket/{}&prefix=data/", kListQuery);
  server_.AnswerNext(first, {.body = "<ListBucketResult><IsTruncated>true</IsTruncated>"
                                     "<NextContinuationToken>a b+c</NextContinuationToken>"
                                     "</ListBucketResult>"});
  server_.AnswerNext(first + "&continuation-token=a b+c",
                     {.body = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>"
                              "data/c</Key><Size>1</Size></Contents></ListBucketResult>"});
  const auto listing = store_->List(Soon(), {});
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->objects.size(), 1U);
  EXPECT_THAT(server_.requests().back().target, HasSubstr("continuation-token=a%20b%2Bc"));
}

TEST_F(S3StoreTest, AMissingBucketIsNamed) {
  server_.AnswerNext(fmt::format("bucket/{}&prefix=data/", kListQuery),
                     {.status = 404, .body = "<Error><Code>NoSuchBucket</Code></Error>"});
  const auto listing = store_->List(Soon(), {});
  EXPECT_EQ(listing.error().code(), Code::kNotFound);
  EXPECT_THAT(listing.error().message(), HasSubstr("s3://bucket/data/"));
  EXPECT_THAT(listing.error().message(), HasSubstr("check the bucket's name"));
}

TEST_F(S3StoreTest, KeysOfAFolderAreUsedAndItsTroublesSaid) {
  const TempDir keys;
  keys.Write("accessKeyID", "FROMFOLDER");
  keys.Write("secretAccessKey", "secret");
  store_ = Open("", {.address = {}, .keys_folder = keys.path()});
  server_.Put("bucket/data/a", "x");
  EXPECT_TRUE(Run(Whole("a", 1)).status.ok());
  EXPECT_THAT(LastHeaders().at("authorization"), HasSubstr("Credential=FROMFOLDER/"));
  const TempDir empty;
  store_ = Open("", {.address = {}, .keys_folder = empty.path()});
  const ReadOutcome outcome = Run(Whole("a", 1));
  EXPECT_EQ(outcome.status.code(), Code::kPermissionDenied);
  EXPECT_THAT(outcome.status.message(), HasSubstr("there is no accessKeyID"));
}

// 32 bytes "k" in base64, and their MD5.
constexpr const char* kCustomerKey = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
constexpr const char* kCustomerKeyMd5 = "mT2HRsMGJ5IX5C+0rreZ8Q==";

std::map<std::string, std::string> CustomerKeyOnTheWire() {
  return {{"x-amz-server-side-encryption-customer-algorithm", "AES256"},
          {"x-amz-server-side-encryption-customer-key", kCustomerKey},
          {"x-amz-server-side-encryption-customer-key-md5", kCustomerKeyMd5}};
}

TEST_F(S3StoreTest, ObjectsOfACustomersKeyAreReadWithIt) {
  server_.Put("bucket/data/a", "0123456789", "\"v1\"");
  server_.set_required_headers(CustomerKeyOnTheWire());
  const Status without = Run(Whole("a", 10)).status;
  EXPECT_EQ(without.code(), Code::kInvalidArgument);
  EXPECT_THAT(without.message(), HasSubstr("give sseCustomerKey if objects are encrypted"));
  const TempDir keys;
  keys.Write("accessKeyID", "FROMFOLDER");
  keys.Write("secretAccessKey", "secret");
  keys.Write("sseCustomerKey", kCustomerKey);
  store_ = Open("", {.address = {}, .keys_folder = keys.path()});
  EXPECT_TRUE(Run(Whole("a", 10)).status.ok());
  EXPECT_EQ(into_, "0123456789");
  EXPECT_THAT(LastHeaders().at("authorization"),
              HasSubstr(";x-amz-server-side-encryption-customer-algorithm;"
                        "x-amz-server-side-encryption-customer-key;"
                        "x-amz-server-side-encryption-customer-key-md5,"));
  EXPECT_TRUE(Run(Part("a", 3, 4, 10)).status.ok());
  EXPECT_EQ(into_, "3456");
  EXPECT_EQ(store_->Stat("a", Soon())->size, 10U);
  server_.AnswerNext(fmt::format("bucket/{}&prefix=data/", kListQuery),
                     {.body = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>"
                              "data/a</Key><Size>10</Size></Contents></ListBucketResult>"});
  EXPECT_EQ(store_->List(Soon(), {})->objects.size(), 1U);
  EXPECT_FALSE(LastHeaders().contains("x-amz-server-side-encryption-customer-key"));
}

TEST_F(S3StoreTest, ACustomersKeyMayComeFromTheEnvironment) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "OPTCACHE_SSE_CUSTOMER_KEY") return kCustomerKey;
    return ExampleKeys(name);
  };
  server_.Put("bucket/data/a", "x");
  server_.set_required_headers(CustomerKeyOnTheWire());
  store_ = Open("", {.address = {}, .environment = environment});
  EXPECT_TRUE(Run(Whole("a", 1)).status.ok());
  EXPECT_THAT(LastHeaders().at("authorization"), HasSubstr("Credential=AKIAEXAMPLE/"));
}

// As in pods that have a role, and a Secret for the objects' key alone.
TEST_F(S3StoreTest, AFolderOfACustomersKeyAloneLeavesTheCredentialsToOthers) {
  const TempDir keys;
  keys.Write("sseCustomerKey", std::string(kCustomerKey) + "\n");
  server_.Put("bucket/data/a", "x");
  server_.set_required_headers(CustomerKeyOnTheWire());
  store_ = Open("", {.address = {}, .keys_folder = keys.path(), .environment = ExampleKeys});
  EXPECT_TRUE(Run(Whole("a", 1)).status.ok());
  EXPECT_THAT(LastHeaders().at("authorization"), HasSubstr("Credential=AKIAEXAMPLE/"));
  const TempDir token;
  token.Write("token", "a.b.c");
  server_.AnswerNext("", {.status = 403});
  store_ = Open(fmt::format("&role-arn=r&token-file={}", token.Join("token")),
                {.address = {}, .keys_folder = keys.path(), .environment = Nothing});
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kPermissionDenied);
  for (const auto& [name, value] : LastHeaders())
    EXPECT_THAT(value, Not(HasSubstr(kCustomerKey))) << name;  // to the token service
}

TEST_F(S3StoreTest, ACustomersKeyIsNotSentInClear) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "OPTCACHE_SSE_CUSTOMER_KEY") return kCustomerKey;
    return std::nullopt;
  };
  const S3Address address =
      ParseS3Address("s3://bucket?endpoint=http://192.0.2.1:1", Nothing).value();
  const auto refused = S3Store::Open({.address = address, .environment = environment});
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("http://192.0.2.1:1 would be asked in clear"));
  EXPECT_THAT(refused.error().message(), Not(HasSubstr(kCustomerKey)));
  const TempDir keys;
  keys.Write("sseCustomerKey", kCustomerKey);
  store_ = S3Store::Open({.address = address, .keys_folder = keys.path(), .environment = Nothing})
               .value();
  const Status status = Run(Whole("a", 1)).status;
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("need https://"));
  EXPECT_THAT(status.message(), Not(HasSubstr(kCustomerKey)));
  EXPECT_EQ(store_->Stat("a", Soon()).error().code(), Code::kPermissionDenied);
}

TEST_F(S3StoreTest, NoProxySeesACustomersKey) {
  ScriptedHttpServer proxy;
  ::setenv("http_proxy", proxy.url().c_str(), 1);
  server_.Put("bucket/data/a", "x");
  server_.set_required_headers(CustomerKeyOnTheWire());
  const TempDir keys;
  keys.Write("sseCustomerKey", kCustomerKey);
  store_ = Open("", {.address = {}, .keys_folder = keys.path(), .environment = ExampleKeys});
  const Status status = Run(Whole("a", 1)).status;
  ::unsetenv("http_proxy");
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(proxy.requests().empty());
}

// Bytes as they are stored and listed. The proxy stands for Google.
TEST_F(S3StoreTest, GoogleDoesNotUnpackWhatItSends) {
  const auto open_at = [](const std::string& endpoint) {
    const S3Address address = ParseS3Address("s3://bucket?endpoint=" + endpoint, Nothing).value();
    return S3Store::Open({.address = address, .environment = ExampleKeys}).value();
  };
  ::setenv("http_proxy", server_.url().c_str(), 1);
  store_ = open_at("http://storage.googleapis.com");
  Run(Whole("a", 1));
  const auto read = LastHeaders();
  EXPECT_FALSE(store_->Stat("a", Soon()));
  const auto stat = LastHeaders();
  store_ = open_at("http://objects.example.com");
  Run(Whole("a", 1));
  ::unsetenv("http_proxy");
  ASSERT_EQ(server_.requests().size(), 3U);
  EXPECT_EQ(read.at("accept-encoding"), "gzip");
  EXPECT_THAT(read.at("authorization"), Not(HasSubstr("accept-encoding")));
  EXPECT_EQ(stat.at("accept-encoding"), "gzip");
  EXPECT_FALSE(LastHeaders().contains("accept-encoding"));
}

TEST_F(S3StoreTest, ReadsWaitForTheKeysOfAWebIdentity) {
  const TempDir dir;
  dir.Write("token", "a.b.c");
  server_.AnswerNext(
      "",
      {.body = "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
               "<Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
               "<SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>"
               "</Credentials></AssumeRoleWithWebIdentityResult>"
               "</AssumeRoleWithWebIdentityResponse>"});
  store_ = Open(fmt::format("&role-arn=r&token-file={}", dir.Join("token")));
  server_.Put("bucket/data/a", "x");
  EXPECT_TRUE(Run(Whole("a", 1)).status.ok());
  EXPECT_THAT(LastHeaders().at("authorization"), HasSubstr("Credential=ASIA/"));
  EXPECT_EQ(LastHeaders().at("x-amz-security-token"), "t");
  EXPECT_TRUE(store_->Stat("a", Soon()));
  EXPECT_EQ(server_.requests().size(), 3U);
}

TEST_F(S3StoreTest, ReadsEndWithTheErrorOfTheTokenService) {
  const TempDir dir;
  dir.Write("token", "a.b.c");
  server_.AnswerNext("", {.status = 403});
  server_.AnswerNext("", {.status = 403});
  store_ = Open(fmt::format("&role-arn=r&token-file={}", dir.Join("token")));
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kPermissionDenied);
  EXPECT_EQ(store_->Stat("a", Soon()).error().code(), Code::kPermissionDenied);
}

TEST_F(S3StoreTest, AnExpiredTokenIsWaitedForLikeKeys) {
  const TempDir dir;
  dir.Write("token", "a.b.c");
  store_ = Open(fmt::format("&role-arn=r&token-file={}", dir.Join("token")),
                {.address = {}, .first_patience = Duration::zero(), .environment = Nothing});
  server_.AnswerNext("", kExpired);
  const ReadOutcome outcome = Run(Whole("a", 1));
  EXPECT_EQ(outcome.status.code(), Code::kPermissionDenied);
  EXPECT_TRUE(outcome.keys_expired);
  server_.AnswerNext("", kExpired);
  const Status listed = store_->List(Soon(), {}).error();
  EXPECT_EQ(listed.code(), Code::kPermissionDenied);
  EXPECT_THAT(listed.message(), HasSubstr("asked 1 times: "));
}

// The server has no certificate; what libcurl says of a file that is not there tells which it
// reads.
TEST_F(S3StoreTest, CertificatesOfTheSurroundingsAreTrusted) {
  const auto environment = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "AWS_CA_BUNDLE") return "/nonexistent/of-aws.pem";
    return std::nullopt;
  };
  const auto error_of = [&](S3StoreOptions options) {
    options.address =
        ParseS3Address("s3://bucket?endpoint=https://" + server_.url().substr(7), Nothing).value();
    options.environment = environment;
    return S3Store::Open(std::move(options)).value()->Stat("a", Soon()).error();
  };
  const Status status = error_of({.address = {}});
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("/nonexistent/of-aws.pem"));
  EXPECT_THAT(error_of({.address = {}, .ca_file = "/nonexistent/own.pem"}).message(),
              HasSubstr("/nonexistent/own.pem"));
  const Duration soon = std::chrono::milliseconds(100);
  EXPECT_THAT(error_of({.address = {}, .connect_timeout = soon, .ambient_keys = false}).message(),
              Not(HasSubstr("of-aws.pem")));
}

TEST_F(S3StoreTest, HalfAPairOfKeysIsRefused) {
  const auto half = [](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "AWS_ACCESS_KEY_ID") return "AKIA";
    return std::nullopt;
  };
  const auto store =
      S3Store::Open({.address = ParseS3Address("s3://bucket", half).value(), .environment = half});
  EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
}

TEST_F(S3StoreTest, ShutDownItRefuses) {
  store_->Shutdown();
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace optcache::storage
