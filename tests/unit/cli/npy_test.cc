#include "cli/order/npy.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"

namespace optcache::cli {
namespace {

// As numpy.save writes it, byte for byte.
TEST(Npy, WritesVersionOneWithAlignedData) {
  const std::string bytes = NpyBytes(std::vector<SampleId>{1, 0x01020304});
  ASSERT_EQ(bytes.size(), 128U + 8U);
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  const std::string header = "{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(bytes.substr(10, 118), header + std::string(117 - header.size(), ' ') + '\n');
  EXPECT_EQ(bytes.substr(128), std::string("\1\0\0\0\4\3\2\1", 8));
}

TEST(Npy, AnEmptyOrderHasShapeZero) {
  const std::string bytes = NpyBytes({});
  EXPECT_EQ(bytes.size(), 128U);
  EXPECT_NE(bytes.find("'shape': (0,)"), std::string::npos);
}

TEST(Npy, DataIsAlignedForAnyCount) {
  for (std::size_t count = 1; count <= 100'000; count *= 10) {
    EXPECT_EQ((NpyBytes(std::vector<SampleId>(count)).size() - 4 * count) % 64, 0U) << count;
  }
}

TEST(Npy, WritesTheFile) {
  const std::vector<SampleId> ids = {3, 1, 2};
  const std::string path = testing::TempDir() + "/npy_test.npy";
  ASSERT_TRUE(WriteNpy(path, ids).ok());
  EXPECT_EQ(ReadFile(path, 1_KiB).value(), NpyBytes(ids));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace optcache::cli
