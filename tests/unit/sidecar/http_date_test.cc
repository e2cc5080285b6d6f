#include "sidecar/s3/http_date.h"

#include <limits>

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

constexpr std::int64_t kMoment = 784'111'777;

TEST(HttpDate, IsWrittenInOneForm) {
  EXPECT_EQ(HttpDate(kMoment), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(HttpDate(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(HttpDate(std::numeric_limits<std::int64_t>::max()), HttpDate(0)) << "no such year";
}

TEST(HttpDate, IsReadInThree) {
  for (const char* const text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                 "Sun Nov  6 08:49:37 1994"})
    EXPECT_EQ(ParseHttpDate(text), kMoment) << text;
}

TEST(HttpDate, ComesBackAsItWas) {
  for (const std::int64_t time : {0L, 1L, 951'782'400L, 4'102'444'800L})
    EXPECT_EQ(ParseHttpDate(HttpDate(time)), time);
}

TEST(HttpDate, IsNothingElse) {
  for (const std::string text :
       {"", "0", "784111777", "yesterday", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:37 GMT and more", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"})
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  EXPECT_EQ(ParseHttpDate(std::string("Sun, 06 Nov 1994 08:49:37 GMT\0", 30)), std::nullopt);
}

}  // namespace
}  // namespace optcache::sidecar
