#include "control/error_response.h"

#include <gtest/gtest.h>

namespace optcache::control {
namespace {

TEST(ErrorResponse, SaysCodeAndSentence) {
  const net::HttpResponse response = ErrorResponse({Code::kNotFound, "no base of this digest"});
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "{\"error\":\"not_found: no base of this digest\"}\n");
}

TEST(ErrorResponse, TellsWhatTheNodeDoesNext) {
  const auto status_of = [](Code code) { return ErrorResponse({code, "why"}).status; };
  EXPECT_EQ(status_of(Code::kInvalidArgument), 400);
  EXPECT_EQ(status_of(Code::kPermissionDenied), 403);
  EXPECT_EQ(status_of(Code::kConflict), 409);
  EXPECT_EQ(status_of(Code::kResourceExhausted), 503);
  EXPECT_EQ(status_of(Code::kUnavailable), 503);
  EXPECT_EQ(status_of(Code::kInternal), 500);
}

TEST(ErrorResponse, QuotesBytesThatAreNoText) {
  EXPECT_EQ(ErrorResponse({Code::kInternal, "\xff"}).body,
            "{\"error\":\"internal: \xef\xbf\xbd\"}\n");
}

}  // namespace
}  // namespace optcache::control
