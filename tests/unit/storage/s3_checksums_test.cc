#include "storage/s3_checksums.h"

#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "storage/s3_store.h"
#include "support/read_waiter.h"
#include "support/scripted_http_server.h"

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Of "123456789", in base64.
const std::map<std::string, std::string> kRight = {
    {"crc32", "y/Q5Jg=="},
    {"crc32c", "4waSgw=="},
    {"crc64nvme", "rosUhgp5mIg="},
    {"sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="},
    {"sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="},
};
const std::map<std::string, std::string> kNames = {{"crc32", "CRC-32"},
                                                   {"crc32c", "CRC-32C"},
                                                   {"crc64nvme", "CRC-64/NVME"},
                                                   {"sha1", "SHA-1"},
                                                   {"sha256", "SHA-256"}};

TEST(ParseS3Checksums, TakesEachKind) {
  std::map<std::string, std::string> headers = {{"x-amz-checksum-type", "FULL_OBJECT"}};
  for (const auto& [kind, sum] : kRight)
    headers["x-amz-checksum-" + kind] = sum;
  const std::vector<ToldSum> told = ParseS3Checksums(headers);
  ASSERT_EQ(told.size(), kRight.size());
  EXPECT_EQ(told[1], (ToldSum{.kind = SumKind::kCrc32c, .value = "\xe3\x06\x92\x83"}));
  for (const auto& [name, value] : headers)
    EXPECT_THAT(S3ChecksumHeaders(), testing::Contains(name));
}

TEST(ParseS3Checksums, WithoutATypeItIsOfTheWholeObject) {
  EXPECT_THAT(ParseS3Checksums({{"x-amz-checksum-crc32", "y/Q5Jg=="}}),
              ElementsAre(ToldSum{.kind = SumKind::kCrc32, .value = "\xcb\xf4\x39\x26"}));
}

TEST(ParseS3Checksums, SumsOfSumsAreLeftOut) {
  for (const auto& [kind, sum] : kRight) {
    const std::string name = "x-amz-checksum-" + kind;
    EXPECT_THAT(ParseS3Checksums({{name, sum}, {"x-amz-checksum-type", "COMPOSITE"}}), IsEmpty());
    EXPECT_THAT(ParseS3Checksums({{name, sum + "-3"}}), IsEmpty());
  }
}

TEST(ParseS3Checksums, WhatIsNoSumSaysNothing) {
  for (const char* value : {"", "=", "y/Q5Jg", "y/Q5J===", "y/Q5Jg== ", "rosUhgp5mIg=", "\xff"})
    EXPECT_THAT(ParseS3Checksums({{"x-amz-checksum-crc32", value}}), IsEmpty()) << value;
}

// A bucket of one object, "123456789", of which the server says what the test wants.
class S3ChecksumsTest : public testing::Test {
 protected:
  Status Read(std::vector<std::string> headers, std::string body = "123456789") {
    server_.AnswerNext("bucket/a", {.headers = std::move(headers), .body = std::move(body)});
    return Run(into_, 0);
  }
  Status Run(std::string& into, ByteCount offset) {
    ReadRequest request = {.object = "a",
                           .offset = offset,
                           .destination = std::as_writable_bytes(std::span(into)),
                           .object_size = 9,
                           .validator = {},
                           .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))};
    const ReadOutcome outcome = ReadWaiter().Run(*store_, std::move(request));
    EXPECT_EQ(outcome.sums_differ, outcome.status.code() == Code::kDataLoss);
    return outcome.status;
  }
  static std::string Header(const std::string& kind, const std::string& value) {
    return fmt::format("x-amz-checksum-{}: {}", kind, value);
  }

  ScriptedHttpServer server_;
  std::string into_ = std::string(9, '.');
  std::unique_ptr<S3Store> store_ =
      S3Store::Open({.address = ParseS3Address("s3://bucket?endpoint=" + server_.url(),
                                               [](const char*) -> std::optional<std::string> {
                                                 return std::nullopt;
                                               })
                                    .value(),
                     .ambient_keys = false})
          .value();
};

TEST_F(S3ChecksumsTest, WhatComesHasTheSumThatTheStoreTells) {
  for (const auto& [kind, sum] : kRight) {
    const Status right = Read({Header(kind, sum), "x-amz-checksum-type: FULL_OBJECT"});
    EXPECT_TRUE(right.ok()) << right.ToString();
    EXPECT_EQ(into_, "123456789");
    const Status wrong = Read({Header(kind, sum)}, "123456780");
    EXPECT_EQ(wrong.code(), Code::kDataLoss) << kind;
    EXPECT_THAT(wrong.message(), HasSubstr("a bytes 0-8: the " + kNames.at(kind) + " of what"));
    EXPECT_THAT(wrong.message(), HasSubstr("the store says " + sum));
  }
}

TEST_F(S3ChecksumsTest, SumsOfPartsAreNotTakenForThoseOfTheWhole) {
  for (const auto& [kind, sum] : kRight) {
    EXPECT_TRUE(Read({Header(kind, sum), "x-amz-checksum-type: COMPOSITE"}, "987654321").ok());
    EXPECT_TRUE(Read({Header(kind, sum + "-3")}, "987654321").ok());
  }
}

// Some servers tell there what they know of the whole object, S3 that of a part that fits.
TEST_F(S3ChecksumsTest, WhatIsToldOfARangeIsNotCompared) {
  for (const auto& [kind, sum] : kRight) {
    server_.AnswerNext("bucket/a", {.status = 206,
                                    .headers = {"Content-Range: bytes 2-4/9", Header(kind, sum)},
                                    .body = "345"});
    std::string part(3, '.');
    EXPECT_TRUE(Run(part, 2).ok()) << kind;
  }
}

TEST_F(S3ChecksumsTest, AWrongSumOfAnAnswerThatIsRefusedDoesNotHideWhy) {
  server_.AnswerNext("bucket/a", {.status = 404, .headers = {Header("sha1", kRight.at("sha1"))}});
  EXPECT_EQ(Run(into_, 0).code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::storage
