#include "kube/api_error.h"

#include <gtest/gtest.h>

#include "kube/object.h"

namespace optcache::kube {
namespace {

using std::chrono::seconds;

ApiError ErrorOf(int http_status, const Json& body = Json::object(),
                 const net::HttpHeaders& headers = {}) {
  return MakeApiError(http_status, headers, body.dump(), "create jobs vision/index");
}

TEST(ApiError, ACodeSaysWhatToDoNext) {
  const std::vector<std::pair<int, Code>> expected = {
      {400, Code::kInvalidArgument},   {401, Code::kPermissionDenied},
      {403, Code::kPermissionDenied},  {404, Code::kNotFound},
      {405, Code::kInvalidArgument},   {408, Code::kDeadlineExceeded},
      {409, Code::kConflict},          {410, Code::kConflict},
      {413, Code::kInvalidArgument},   {422, Code::kInvalidArgument},
      {429, Code::kResourceExhausted}, {500, Code::kUnavailable},
      {503, Code::kUnavailable},       {504, Code::kDeadlineExceeded},
      {302, Code::kUnavailable}};
  for (const auto& [http_status, code] : expected)
    EXPECT_EQ(ErrorOf(http_status).status.code(), code) << http_status;
}

TEST(ApiError, TellsWhatWhereAndWhy) {
  const ApiError error =
      ErrorOf(422, {{"kind", "Status"}, {"reason", "Invalid"}, {"message", "spec: too long"}});
  EXPECT_EQ(error.status.message(), "create jobs vision/index: spec: too long (422)");
  EXPECT_EQ(error.reason, "Invalid");
  EXPECT_EQ(error.http_status, 422);
}

TEST(ApiError, QuotesABodyThatIsNoStatusShortened) {
  EXPECT_EQ(MakeApiError(502, {}, "<html>bad gateway", "get pods").status.message(),
            "get pods: <html>bad gateway (502)");
  EXPECT_LT(MakeApiError(502, {}, std::string(100'000, 'x'), "get pods").status.message().size(),
            600U);
  EXPECT_EQ(MakeApiError(502, {}, "", "get pods").status.message(),
            "get pods: no explanation (502)");
}

TEST(ApiError, TellsAlreadyExistsFromConflict) {
  EXPECT_TRUE(ErrorOf(409, {{"reason", "AlreadyExists"}}).already_exists());
  EXPECT_FALSE(ErrorOf(409, {{"reason", "AlreadyExists"}}).conflict());
  EXPECT_TRUE(ErrorOf(409, {{"reason", "Conflict"}}).conflict());
  EXPECT_FALSE(ErrorOf(410, {{"reason", "Expired"}}).conflict());
}

TEST(ApiError, ExpiredComesByStatusAndWithinAStream) {
  EXPECT_TRUE(ErrorOf(410, {{"reason", "Expired"}}).expired());
  const Json in_stream = {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}};
  EXPECT_TRUE(MakeApiError(in_stream, "watch pods").expired());
}

TEST(ApiError, AStatusWithoutASensibleCodeIsTheServersFault) {
  for (const Json& odd : {Json::object(), Json{{"code", 200}}, Json{{"code", "410"}}, Json()})
    EXPECT_EQ(MakeApiError(odd, "watch pods").http_status, 500);
}

TEST(ApiError, RetryAfterComesFromTheHeaderOrTheStatus) {
  EXPECT_EQ(ErrorOf(429, {}, {{"retry-after", "7"}}).retry_after, seconds(7));
  EXPECT_EQ(ErrorOf(429, {{"details", {{"retryAfterSeconds", 3}}}}).retry_after, seconds(3));
  EXPECT_EQ(ErrorOf(429).retry_after, std::nullopt);
  for (const char* odd : {"", "-1", "soon", "Fri, 15 Jan 2027 08:00:00 GMT"})
    EXPECT_EQ(ErrorOf(429, {}, {{"Retry-After", odd}}).retry_after, std::nullopt) << odd;
  EXPECT_EQ(ErrorOf(429, {}, {{"Retry-After", "86400"}}).retry_after, seconds(300));
}

TEST(ApiError, ANamespaceThatGoesIsToldFromMissingRights) {
  const Json terminating = {
      {"reason", "Forbidden"},
      {"details", {{"causes", {{{"reason", "NamespaceTerminating"}, {"message", "..."}}}}}}};
  EXPECT_TRUE(ErrorOf(403, terminating).namespace_terminating);
  EXPECT_FALSE(ErrorOf(403, {{"reason", "Forbidden"}}).namespace_terminating);
}

TEST(ApiError, AMissingNamespaceIsToldFromAMissingObject) {
  EXPECT_TRUE(ErrorOf(404, {{"reason", "NotFound"}, {"details", {{"kind", "namespaces"}}}})
                  .namespace_missing);
  EXPECT_FALSE(ErrorOf(404, {{"reason", "NotFound"}, {"details", {{"kind", "configmaps"}}}})
                   .namespace_missing);
}

TEST(ApiError, TransientIsWhatTimeHeals) {
  EXPECT_TRUE(ErrorOf(503).transient());
  EXPECT_TRUE(ErrorOf(504).transient());
  EXPECT_TRUE(ErrorOf(429).transient());
  EXPECT_TRUE(ErrorOf(409, {{"reason", "Conflict"}}).transient());
  EXPECT_TRUE(MakeApiError(Status(Code::kUnavailable, "no route")).transient());
  EXPECT_FALSE(ErrorOf(409, {{"reason", "AlreadyExists"}}).transient());
  EXPECT_FALSE(ErrorOf(403).transient());
  EXPECT_FALSE(ErrorOf(422).transient());
}

}  // namespace
}  // namespace optcache::kube
