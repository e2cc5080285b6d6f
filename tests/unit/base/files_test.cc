#include "base/files.h"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

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

TEST(Files, SaysWhichFolderIsMissing) {
  const Status status = WriteFileAtomically("/nonexistent/folder/file", "x");
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("/nonexistent/folder/file"), std::string::npos);
}

}  // namespace
}  // namespace optcache
