#include "sidecar/s3/preconditions.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

constexpr const char* kBefore = "Sun, 06 Nov 1994 08:49:36 GMT";
constexpr const char* kThen = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr const char* kAfter = "Sun, 06 Nov 1994 08:49:38 GMT";
constexpr ObjectVersion kVersion = {.etag = "\"a,b\"", .modified_s = 784'111'777};
constexpr ObjectVersion kOfNoTime = {.etag = "\"a,b\"", .modified_s = 0};

Precondition Check(const net::HttpHeaders& headers, const ObjectVersion& version = kVersion) {
  return CheckPreconditions(headers, version);
}

TEST(Preconditions, HoldIfThereAreNone) {
  EXPECT_EQ(Check({}), Precondition::kHolds);
  EXPECT_EQ(Check({{"Range", "bytes=0-1"}}), Precondition::kHolds);
}

TEST(Preconditions, IfMatchWantsTheVersion) {
  for (const char* const list : {"*", " * ", "\"a,b\"", "\"x\", \"a,b\"", "\"x\",,\t\"a,b\" ,"})
    EXPECT_EQ(Check({{"if-match", list}}), Precondition::kHolds) << list;
  for (const char* const list : {"", "\"a\"", "\"b\"", "W/\"a,b\"", "\"a,b", "\"x\", *", ",", "W/"})
    EXPECT_EQ(Check({{"If-Match", list}}), Precondition::kIfMatchFails) << list;
}

TEST(Preconditions, AnETagMayLackItsQuotes) {
  const ObjectVersion plain = {.etag = "\"abc\"", .modified_s = 1};
  EXPECT_EQ(Check({{"If-Match", "x, abc"}}, plain), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-None-Match", "abc"}}, plain), Precondition::kNotModified);
  EXPECT_EQ(Check({{"If-Match", "ab"}}, plain), Precondition::kIfMatchFails);
}

TEST(Preconditions, AListMayStandInSeveralHeaders) {
  EXPECT_EQ(Check({{"If-Match", "\"x\""}, {"If-Match", "\"a,b\""}}), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-None-Match", "\"x\""}, {"if-none-match", "\"a,b\""}}),
            Precondition::kNotModified);
}

TEST(Preconditions, IfNoneMatchIsWeak) {
  for (const char* const list : {"*", "\"a,b\"", "W/\"a,b\"", "\"x\", W/\"a,b\""})
    EXPECT_EQ(Check({{"If-None-Match", list}}), Precondition::kNotModified) << list;
  for (const char* const list : {"", "\"a\"", "w/\"a,b\""})
    EXPECT_EQ(Check({{"If-None-Match", list}}), Precondition::kHolds) << list;
}

TEST(Preconditions, TimesAreToTheSecond) {
  EXPECT_EQ(Check({{"If-Modified-Since", kBefore}}), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-Modified-Since", kThen}}), Precondition::kNotModified);
  EXPECT_EQ(Check({{"If-Modified-Since", kAfter}}), Precondition::kNotModified);
  EXPECT_EQ(Check({{"If-Unmodified-Since", kBefore}}), Precondition::kIfUnmodifiedSinceFails);
  EXPECT_EQ(Check({{"If-Unmodified-Since", kThen}}), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-Unmodified-Since", kAfter}}), Precondition::kHolds);
}

TEST(Preconditions, ATimeThatIsNoneOrNotKnownIsPassedOver) {
  EXPECT_EQ(Check({{"If-Unmodified-Since", "before"}}), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-Modified-Since", "later"}}), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-Unmodified-Since", kBefore}}, kOfNoTime), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-Modified-Since", kAfter}}, kOfNoTime), Precondition::kHolds);
}

TEST(Preconditions, AnETagGoesBeforeATime) {
  const std::pair<std::string, std::string> same = {"If-Match", "\"a,b\""};
  const std::pair<std::string, std::string> other = {"If-Match", "\"x\""};
  EXPECT_EQ(Check({{"If-Unmodified-Since", kBefore}, same}), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-Unmodified-Since", kAfter}, other}), Precondition::kIfMatchFails);
  const std::pair<std::string, std::string> none = {"If-None-Match", "\"x\""};
  EXPECT_EQ(Check({{"If-Modified-Since", kAfter}, none}), Precondition::kHolds);
  EXPECT_EQ(Check({{"If-Modified-Since", kBefore}, {"If-None-Match", "\"a,b\""}}),
            Precondition::kNotModified);
}

TEST(Preconditions, WhatFailsGoesBeforeWhatIsNotModified) {
  EXPECT_EQ(Check({{"If-None-Match", "\"a,b\""}, {"If-Match", "\"x\""}}),
            Precondition::kIfMatchFails);
  EXPECT_EQ(Check({{"If-None-Match", "\"a,b\""}, {"If-Match", "\"a,b\""}}),
            Precondition::kNotModified);
  EXPECT_EQ(Check({{"If-Modified-Since", kAfter}, {"If-Unmodified-Since", kBefore}}),
            Precondition::kIfUnmodifiedSinceFails);
}

TEST(Preconditions, IfRangeNamesThisVeryVersion) {
  EXPECT_TRUE(RangeCounts({}, kVersion));
  EXPECT_TRUE(RangeCounts({{"if-range", "\"a,b\""}}, kVersion));
  EXPECT_TRUE(RangeCounts({{"If-Range", kThen}}, kVersion));
  for (const char* const other : {"", "*", "a,b", "W/\"a,b\"", "\"x\"", kBefore, kAfter})
    EXPECT_FALSE(RangeCounts({{"If-Range", other}}, kVersion)) << other;
  EXPECT_FALSE(RangeCounts({{"If-Range", "Thu, 01 Jan 1970 00:00:00 GMT"}}, kOfNoTime));
}

}  // namespace
}  // namespace optcache::sidecar
