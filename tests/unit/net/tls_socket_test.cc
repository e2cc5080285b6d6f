#include "net/internal/tls_socket.h"

#include <sys/socket.h>

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/unique_fd.h"
#include "unit/net/transports.h"

namespace optcache::net {
namespace {

using Want = TlsSocket::Want;

class TlsSocketTest : public testing::Test {
 protected:
  TlsSocketTest() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    fds = {UniqueFd(ends[0]), UniqueFd(ends[1])};
    client.emplace(ends[0], *CommonCa().Client(), "optcache-node");
    server.emplace(ends[1], *CommonCa().Server({"optcache-node"}), "");
    for (int i = 0; i < 4; ++i) {
      const auto at_client = client->Handshake();
      const auto at_server = server->Handshake();
      EXPECT_EQ(at_client.error, nullptr);
      EXPECT_EQ(at_server.error, nullptr);
      if (at_client.want == Want::kNothing && at_server.want == Want::kNothing) return;
    }
    ADD_FAILURE() << "no handshake";
  }

  // All that has arrived at the server.
  void Receive(std::vector<std::byte>& received) {
    std::vector<std::byte> some(100'000);
    for (;;) {
      const auto progress = server->Read(std::array{asio::mutable_buffer(asio::buffer(some))});
      if (progress.bytes == 0) return;
      received.insert(received.end(), some.data(), some.data() + progress.bytes);
    }
  }

  std::array<UniqueFd, 2> fds;
  std::optional<TlsSocket> client;
  std::optional<TlsSocket> server;
};

TEST_F(TlsSocketTest, AWriteThatIsCutGoesOnWithTheSameBytes) {
  std::vector<std::byte> data(5'000'000);
  Random random(1);
  for (std::byte& b : data)
    b = static_cast<std::byte>(random.Next());
  std::vector<std::byte> received;
  std::size_t sent = 0;
  int cut = 0;
  for (int i = 0; i < 1000 && sent < data.size(); ++i) {
    // As a queue of heads and payloads, of which some is done.
    std::vector<asio::const_buffer> pieces;
    std::size_t begin = 0;
    for (const std::size_t size :
         std::array<std::size_t, 6>{30, 110'000, 30, 5'000, 30, 4'884'910}) {
      const std::size_t done = std::min(sent - std::min(sent, begin), size);
      if (done < size) pieces.emplace_back(data.data() + begin + done, size - done);
      begin += size;
    }
    ASSERT_EQ(begin, data.size());
    const auto progress = client->Write(pieces);
    ASSERT_FALSE(progress.error);
    sent += progress.bytes;
    if (progress.want == Want::kWritable) {
      EXPECT_EQ(progress.bytes, 0);
      ++cut;
      Receive(received);
    }
  }
  Receive(received);
  EXPECT_EQ(sent, data.size());
  EXPECT_TRUE(received == data);
  EXPECT_GT(cut, 0);
}

// So that whoever watches for progress sees it.
TEST_F(TlsSocketTest, SaysOfAWriteWhatHasGone) {
  const std::vector<std::byte> data(100'000);
  const int little = 10'000;
  ::setsockopt(fds[0].get(), SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
  const auto first = client->Write(std::array{asio::const_buffer(asio::buffer(data))});
  EXPECT_GT(first.bytes, 0);
  EXPECT_LT(first.bytes, data.size());
  const auto rest = asio::buffer(data) + first.bytes;
  EXPECT_EQ(client->Write(std::array{asio::const_buffer(rest)}).want, Want::kWritable);
  std::vector<std::byte> received;
  Receive(received);
  EXPECT_GT(client->Write(std::array{asio::const_buffer(rest)}).bytes, 0);
}

TEST_F(TlsSocketTest, TheEndIsTold) {
  client->Shutdown();
  std::array<std::byte, 10> some = {};
  const std::array space = {asio::mutable_buffer(asio::buffer(some))};
  EXPECT_EQ(server->Read(space).error, asio::error::eof);
  EXPECT_TRUE(server->has_pending());
}

TEST_F(TlsSocketTest, WhatArrivedTogetherIsPending) {
  const std::vector<std::byte> data(1000);
  for (int i = 0; i < 2; ++i)
    client->Write(std::array{asio::const_buffer(asio::buffer(data))});
  std::array<std::byte, 1000> some = {};
  const std::array space = {asio::mutable_buffer(asio::buffer(some))};
  EXPECT_EQ(server->Read(space).bytes, 1000);
  EXPECT_TRUE(server->has_pending());
  EXPECT_EQ(server->Read(space).bytes, 1000);
  EXPECT_FALSE(server->has_pending());
  EXPECT_EQ(server->Read(space).want, Want::kReadable);
}

}  // namespace
}  // namespace optcache::net
