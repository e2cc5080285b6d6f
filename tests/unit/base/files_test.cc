#include "base/files.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace optcache {
namespace {

TEST(Files, WritesAndReadsBack) {
  const std::string path = testing::TempDir() + "/files_test";
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "two").ok());
  EXPECT_EQ(ReadFile(path, 3).value(), "two");
  EXPECT_EQ(ReadFile(path, 2).error().code(), Code::kResourceExhausted);
  std::filesystem::remove(path);
  EXPECT_EQ(ReadFile(path, 3).error().code(), Code::kNotFound);
}

TEST(Files, SaysWhichFileItCannotWrite) {
  EXPECT_EQ(WriteFileAtomically("/nonexistent/folder/file", "x").ToString(),
            "not_found: cannot write /nonexistent/folder/file: No such file or directory");
}

TEST(Files, ReadsTheEndAlone) {
  const std::string path = testing::TempDir() + "/files_test_end";
  ASSERT_TRUE(WriteFileAtomically(path, "beginning and end").ok());
  EXPECT_EQ(ReadFileEnd(path, 3).value(), "end");
  EXPECT_EQ(ReadFileEnd(path, 100).value(), "beginning and end");
  std::filesystem::remove(path);
  EXPECT_EQ(ReadFileEnd(path, 3).error().code(), Code::kNotFound);
}

class ReadTokenTest : public testing::Test {
 protected:
  Result<std::string> ReadBack(std::string_view content) {
    dir_.Write("token", content);
    return ReadToken(dir_.Join("token"));
  }
  TempDir dir_;
};

TEST_F(ReadTokenTest, IsTheLineWithoutItsEnd) {
  EXPECT_EQ(ReadBack("abc.def-_\n").value(), "abc.def-_");
}

TEST_F(ReadTokenTest, WhatWouldForgeAHeaderIsNoToken) {
  for (const char* content : {"", "\n", "a b", "a\r\nX-Admin: 1", "t\xc3\xa4"}) {
    const auto token = ReadBack(content);
    ASSERT_FALSE(token.has_value()) << content;
    EXPECT_EQ(token.error().code(), Code::kInvalidArgument);
  }
}

TEST_F(ReadTokenTest, HasALimit) {
  EXPECT_EQ(ReadBack(std::string(4096, 'a')).value().size(), 4096U);
  EXPECT_EQ(ReadBack(std::string(4097, 'a')).error().code(), Code::kResourceExhausted);
}

TEST(Files, ALockIsHeldAsLongAsItIsOpen) {
  const TempDir dir;
  auto first = LockFile(dir.Join("lock"));
  ASSERT_TRUE(first) << first.error().ToString();
  EXPECT_EQ(LockFile(dir.Join("lock")).error().code(), Code::kConflict);
  EXPECT_TRUE(LockFile(dir.Join("other")));
  first->Reset();
  EXPECT_TRUE(LockFile(dir.Join("lock")));
  EXPECT_EQ(LockFile(dir.Join("none/lock")).error().code(), Code::kNotFound);
}

TEST(Files, AsManyMayBeOpenAsTheSystemAllows) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  RaiseOpenFilesLimit();
  rlimit raised{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace optcache
