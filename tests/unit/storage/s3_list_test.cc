// A bucket whose address names a list of its keys.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/s3_store.h"
#include "support/scripted_http_server.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class S3ListTest : public testing::Test {
 protected:
  static std::optional<std::string> Keys(const char* name) {
    if (std::string_view(name) == "AWS_ACCESS_KEY_ID") return "AKIAEXAMPLE";
    if (std::string_view(name) == "AWS_SECRET_ACCESS_KEY") return "secret";
    return std::nullopt;
  }
  std::unique_ptr<S3Store> Open(std::string_view key, ByteCount bytes_max = 1_MiB) {
    const std::string address =
        fmt::format("s3://bucket/data?endpoint={}&listing={}", server_.url(), key);
    return S3Store::Open({.address = ParseS3Address(address, Keys).value(),
                          .list_bytes_max = bytes_max,
                          .environment = Keys})
        .value();
  }
  static Deadline Soon() { return Deadline::After(SystemClock(), std::chrono::minutes(1)); }

  ScriptedHttpServer server_;
};

TEST_F(S3ListTest, AListOfKeysIsReadAndNothingIsListed) {
  const auto store = Open("lists/a+b.txt");
  server_.AnswerNext("bucket/lists/a+b.txt",
                     {.body = "data/b/1 2\t5\t\"e\"\ndata/c\t0\t\"f\"\nother/d\t1\n"});
  std::uint64_t told = 0;
  const auto listing = store->List(Soon(), [&](std::uint64_t objects) { told = objects; });
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 2U);
  EXPECT_EQ(listing->objects[0].path, "b/1 2");
  EXPECT_EQ(listing->objects[0].info->validator.etag, "\"e\"");
  EXPECT_EQ(told, 2U);
  ASSERT_EQ(server_.requests().size(), 1U);
  EXPECT_EQ(server_.requests().back().target, "/bucket/lists/a%2Bb.txt");
  EXPECT_TRUE(server_.requests().back().headers.contains("authorization"));
}

TEST_F(S3ListTest, AListOfKeysIsAskedForAgain) {
  const auto store = Open("list");
  server_.AnswerNext("bucket/list", {.status = 503, .body = "<Error/>"});
  server_.AnswerNext("bucket/list", {.body = "data/a\t1\n"});
  const auto listing = store->List(Soon(), {});
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(server_.requests().size(), 2U);
}

TEST_F(S3ListTest, WhatIsWrongWithAListOfKeysIsSaid) {
  const auto error_of = [&](const std::string& text) {
    const auto store = Open("list", 100);
    server_.AnswerNext("bucket/list", {.body = text});
    return store->List(Soon(), {}).error();
  };
  const std::string list = "the list list of s3://bucket/data/: ";
  const Status bad = error_of("data/a\t1\ndata/b\n");
  EXPECT_EQ(bad.code(), Code::kInvalidArgument);
  EXPECT_THAT(bad.message(), StartsWith(list + "line 2: the size is missing"));
  const Status nothing = error_of("train/a\t1\n");
  EXPECT_EQ(nothing.code(), Code::kNotFound);
  EXPECT_THAT(nothing.message(), StartsWith(list + "it names no objects below \"data/\""));
  const Status too_long = error_of(std::string(101, '\n'));
  EXPECT_EQ(too_long.code(), Code::kInvalidArgument);
  EXPECT_THAT(too_long.message(), HasSubstr("it is longer than the limit of 100 B"));
  const auto store = Open("gone");
  server_.AnswerNext("bucket/gone",
                     {.status = 404, .body = "<Error><Code>NoSuchKey</Code></Error>"});
  EXPECT_EQ(store->List(Soon(), {}).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::storage
