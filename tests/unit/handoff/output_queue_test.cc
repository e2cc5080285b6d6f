#include "handoff/internal/output_queue.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace optcache::handoff::internal {
namespace {

struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()), 0);
    near = UniqueFd(fds[0]);
    far = UniqueFd(fds[1]);
  }
  UniqueFd near;
  UniqueFd far;
};

Piece Owned(std::string_view text) {
  return {.owned = FrameBytes(AsBytes(text).begin(), AsBytes(text).end()), .pinned = {}, .pin = {}};
}

std::string ReadAll(int fd) {
  std::string all;
  std::array<char, 65536> some{};
  while (true) {
    const ssize_t n = ::recv(fd, some.data(), some.size(), 0);
    if (n <= 0) return all;
    all.append(some.data(), static_cast<std::size_t>(n));
  }
}

TEST(OutputQueue, GathersPiecesInOrder) {
  SocketPair pair;
  OutputQueue queue;
  const auto shared = std::make_shared<const std::string>("pinned ");
  queue.Push(Owned("owned "));
  queue.Push({.owned = {}, .pinned = AsBytes(*shared), .pin = shared});
  queue.Push(Owned("end"));
  EXPECT_EQ(queue.bytes(), 16U);
  EXPECT_EQ(shared.use_count(), 2);
  EXPECT_TRUE(*queue.WriteTo(pair.near.get()));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_EQ(ReadAll(pair.far.get()), "owned pinned end");
}

TEST(OutputQueue, GoesOnWhereAFullSocketStoppedIt) {
  SocketPair pair;
  OutputQueue queue;
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const std::string text(5000, static_cast<char>('a' + i % 26));
    expected += text;
    queue.Push(Owned(text));
  }
  EXPECT_TRUE(*queue.WriteTo(pair.near.get()));
  EXPECT_FALSE(queue.empty());
  EXPECT_FALSE(*queue.WriteTo(pair.near.get()));

  std::string got;
  while (!queue.empty()) {
    got += ReadAll(pair.far.get());
    ASSERT_TRUE(queue.WriteTo(pair.near.get()));
  }
  got += ReadAll(pair.far.get());
  EXPECT_EQ(got, expected);
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(OutputQueue, PassesADescriptorWithTheFirstByteOfItsPiece) {
  SocketPair pair;
  OutputQueue queue;
  queue.Push(Owned("before"));
  queue.Push(Owned("with"), UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  queue.Push(Owned("after"));
  ASSERT_TRUE(*queue.WriteTo(pair.near.get()));

  std::array<char, 64> bytes{};
  std::string got;
  std::size_t at = 0;
  std::size_t descriptors = 0;
  while (true) {
    alignas(cmsghdr) std::array<char, 64> control{};
    iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(pair.far.get(), &message, 0);
    if (n <= 0) break;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
      at = got.size();
      ++descriptors;
      UniqueFd received(*reinterpret_cast<const int*>(CMSG_DATA(header)));
      EXPECT_TRUE(received.valid());
    }
    got.append(bytes.data(), static_cast<std::size_t>(n));
  }
  EXPECT_EQ(got, "beforewithafter");
  EXPECT_EQ(descriptors, 1U);
  EXPECT_LE(at, 6U);
}

TEST(OutputQueue, ReportsAClientThatTakesNothingAnyMore) {
  SocketPair pair;
  pair.far.Reset();
  OutputQueue queue;
  queue.Push(Owned("x"));
  EXPECT_FALSE(queue.WriteTo(pair.near.get()));
}

}  // namespace
}  // namespace optcache::handoff::internal
