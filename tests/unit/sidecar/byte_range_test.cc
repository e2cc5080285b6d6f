#include "sidecar/s3/byte_range.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {

static std::ostream& operator<<(std::ostream& out, const ByteRange& range) {
  return out << range.first << "+" << range.length;
}

namespace {

void ExpectPart(std::string_view header, ByteCount size, const ByteRange& bytes) {
  const RequestedRange range = ParseRange(header, size);
  EXPECT_EQ(range.kind, RangeKind::kPart) << header;
  EXPECT_EQ(range.bytes, bytes) << header;
}

TEST(ByteRange, IsFromOneByteToAnother) {
  ExpectPart("bytes=0-0", 10, {.first = 0, .length = 1});
  ExpectPart("bytes=2-4", 10, {.first = 2, .length = 3});
}

TEST(ByteRange, EndsWithTheObject) {
  ExpectPart("bytes=7-", 10, {.first = 7, .length = 3});
  ExpectPart("bytes=7-9", 10, {.first = 7, .length = 3});
  ExpectPart("bytes=7-18446744073709551615", 10, {.first = 7, .length = 3});
}

TEST(ByteRange, MayHaveNumbersBeyondAnyObject) {
  ExpectPart("bytes=7-99999999999999999999", 10, {.first = 7, .length = 3});
  ExpectPart("bytes=-99999999999999999999", 10, {.first = 0, .length = 10});
  EXPECT_EQ(ParseRange("bytes=99999999999999999999-", 10).kind, RangeKind::kUnsatisfiable);
  EXPECT_EQ(ParseRange("bytes=99999999999999999998-99999999999999999999", 10).kind,
            RangeKind::kUnsatisfiable);
}

TEST(ByteRange, HasAUnitWithoutCase) {
  ExpectPart("Bytes=2-4", 10, {.first = 2, .length = 3});
}

TEST(ByteRange, MayBeTheLastBytes) {
  ExpectPart("bytes=-3", 10, {.first = 7, .length = 3});
  ExpectPart("bytes=-11", 10, {.first = 0, .length = 10});
}

TEST(ByteRange, BeyondTheEndIsUnsatisfiable) {
  EXPECT_EQ(ParseRange("bytes=10-", 10).kind, RangeKind::kUnsatisfiable);
  EXPECT_EQ(ParseRange("bytes=10-12", 10).kind, RangeKind::kUnsatisfiable);
  EXPECT_EQ(ParseRange("bytes=-0", 10).kind, RangeKind::kUnsatisfiable);
  EXPECT_EQ(ParseRange("bytes=0-", 0).kind, RangeKind::kUnsatisfiable);
}

TEST(ByteRange, WhatIsNotUnderstoodMeansAllOfIt) {
  EXPECT_EQ(ParseRange(std::nullopt, 10).kind, RangeKind::kWhole);
  for (const char* const header :
       {"", "bytes", "bytes=", "bytes=-", "bytes=4-2", "bytes=0-1,3-4", "bytes=a-4", "bytes=1-b",
        "bytes=+1-4", "rows=1-4", "bytes=-a", "bytes= 1-4"}) {
    const RequestedRange range = ParseRange(header, 10);
    EXPECT_EQ(range.kind, RangeKind::kWhole) << header;
    EXPECT_EQ(range.bytes, (ByteRange{.first = 0, .length = 10})) << header;
  }
}

}  // namespace
}  // namespace optcache::sidecar
