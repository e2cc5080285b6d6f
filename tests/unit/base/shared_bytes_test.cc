#include "base/shared_bytes.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace optcache {
namespace {

TEST(SharedBytes, CopiesShare) {
  const SharedBytes one(std::string(1000, 'x'));
  const SharedBytes other = one;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(other.data(), one.data());
  EXPECT_EQ(other.size(), 1000U);
  EXPECT_TRUE(SharedBytes().empty());
}

TEST(SharedBytes, AMappedFileOutlivesItsName) {
  TempDir dir;
  dir.Write("file", "content");
  const auto bytes = SharedBytes::Map(dir.Join("file"), 7);
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message();
  std::filesystem::remove(dir.Join("file"));
  EXPECT_EQ(bytes->view(), "content");
}

TEST(SharedBytes, AnEmptyFileIsNoBytes) {
  TempDir dir;
  dir.Write("file", "");
  EXPECT_TRUE(SharedBytes::Map(dir.Join("file"), 7).value().empty());
}

TEST(SharedBytes, ErrorsNameTheFile) {
  TempDir dir;
  dir.Write("file", "content");
  const auto long_one = SharedBytes::Map(dir.Join("file"), 6);
  EXPECT_EQ(long_one.error().code(), Code::kResourceExhausted);
  EXPECT_NE(long_one.error().message().find(dir.Join("file")), std::string::npos);
  EXPECT_EQ(SharedBytes::Map(dir.Join("none"), 6).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache
