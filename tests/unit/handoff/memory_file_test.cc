#include "handoff/memory_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

namespace optcache::handoff {
namespace {

TEST(MemoryFile, HasItsSizeAndItsBlocksAtOnce) {
  const auto fd = MakeMemoryFile("test", 3_MiB);
  ASSERT_TRUE(fd) << fd.error().ToString();
  struct stat info{};
  ASSERT_EQ(::fstat(fd->get(), &info), 0);
  EXPECT_EQ(info.st_size, 3 << 20);
  EXPECT_GE(info.st_blocks * 512, 3 << 20);
}

TEST(MemoryFile, ASealedCopyHoldsItsBytesForEver) {
  const auto fd = MakeSealedCopy("test", AsBytes("manifest"));
  ASSERT_TRUE(fd) << fd.error().ToString();
  std::string read(20, '\0');
  read.resize(static_cast<std::size_t>(::pread(fd->get(), read.data(), read.size(), 0)));
  EXPECT_EQ(read, "manifest");
  EXPECT_EQ(::pwrite(fd->get(), "x", 1, 0), -1);
  EXPECT_NE(::ftruncate(fd->get(), 3), 0);
  EXPECT_EQ(::mmap(nullptr, 8, PROT_WRITE, MAP_SHARED, fd->get(), 0), MAP_FAILED);
}

}  // namespace
}  // namespace optcache::handoff
