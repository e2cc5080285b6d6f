#include "net/internal/listener.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "unit/net/full_listener.h"

namespace optcache::net {
namespace {

class ListenerTest : public testing::Test {
 protected:
  bool IsSocket() const {
    struct stat info = {};
    return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
  }

  const TempDir folder;
  const std::string path = folder.Join("node.sock");
  const std::string address = "unix:" + path;
  EventLoop loop;
};

TEST_F(ListenerTest, LeavesAFileThatIsNoSocket) {
  folder.Write("node.sock", "notes");
  const auto listener = Listener::Open(loop, address);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), Code::kConflict);
  EXPECT_EQ(listener.error().message(),
            "listen on " + address +
                ": a file that is no socket lies there; remove it or choose another path");
  EXPECT_EQ(std::filesystem::file_size(path), 5U);
}

TEST_F(ListenerTest, LeavesALinkToASocket) {
  const std::string target = folder.Join("other.sock");
  std::filesystem::create_symlink(target, path);
  EXPECT_EQ(Listener::Open(loop, address).error().code(), Code::kConflict);
  EXPECT_TRUE(std::filesystem::is_symlink(path));
}

TEST_F(ListenerTest, ReplacesASocketThatNoProcessListensAt) {
  UnixSocket(path, ::bind).Reset();
  ASSERT_TRUE(IsSocket());
  const auto listener = Listener::Open(loop, address);
  ASSERT_TRUE(listener) << listener.error().ToString();
  EXPECT_TRUE(UnixSocket(path, ::connect).valid());
}

TEST_F(ListenerTest, ItsEndLeavesTheSocketOfItsSuccessor) {
  for (int i = 0; i < 300; ++i) {
    auto first = Listener::Open(loop, address);
    ASSERT_TRUE(first) << first.error().ToString();
    std::jthread ends([&] { first->reset(); });
    Result<std::unique_ptr<Listener>> next = Listener::Open(loop, address);
    while (!next && next.error().code() == Code::kConflict)
      next = Listener::Open(loop, address);
    ends.join();
    ASSERT_TRUE(next) << next.error().ToString();
    ASSERT_TRUE(IsSocket()) << "after " << i;
  }
}

TEST_F(ListenerTest, DoesNotWaitForAListenerThatHasNoRoom) {
  const FullListener stopped(path);
  const auto listener = Listener::Open(loop, address);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), Code::kConflict);
  EXPECT_TRUE(IsSocket());
}

}  // namespace
}  // namespace optcache::net
