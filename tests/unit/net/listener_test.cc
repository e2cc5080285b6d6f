#include "net/internal/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace optcache::net {
namespace {

class ListenerTest : public testing::Test {
 protected:
  // A socket of the system, without our Listener; connected to `path`, or bound to it.
  UniqueFd Raw(int (*call)(int, const sockaddr*, socklen_t)) const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const bool done =
        call(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    return done ? std::move(fd) : UniqueFd();
  }
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
  Raw(::bind).Reset();
  ASSERT_TRUE(IsSocket());
  const auto listener = Listener::Open(loop, address);
  ASSERT_TRUE(listener) << listener.error().ToString();
  EXPECT_TRUE(Raw(::connect).valid());
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
  const UniqueFd stopped = Raw(::bind);
  ASSERT_EQ(::listen(stopped.get(), 0), 0);
  std::vector<UniqueFd> waiting;
  do
    waiting.push_back(Raw(::connect));
  while (waiting.back().valid());
  const auto listener = Listener::Open(loop, address);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), Code::kConflict);
  EXPECT_TRUE(IsSocket());
}

}  // namespace
}  // namespace optcache::net
