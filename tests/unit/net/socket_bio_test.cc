#include "net/internal/socket_bio.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

#include <gtest/gtest.h>
#include <openssl/bio.h>

#include "base/unique_fd.h"

namespace optcache::net {
namespace {

// A socket that keeps apart what each call wrote, below and above.
class SocketBioTest : public testing::Test {
 protected:
  SocketBioTest() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()), 0);
    own = UniqueFd(ends[0]);
    peer = UniqueFd(ends[1]);
    socket = std::make_unique<SocketBio>(own.get());
    bio.reset(socket->MakeBio());
  }
  int Write(const std::string& text) const {
    return BIO_write(bio.get(), text.data(), static_cast<int>(text.size()));
  }
  std::string Read(std::size_t size) const {
    std::string text(size, '\0');
    const int n = BIO_read(bio.get(), text.data(), static_cast<int>(size));
    return n > 0 ? text.substr(0, static_cast<std::size_t>(n)) : "";
  }
  void PeerSends(const std::string& text) const {
    EXPECT_EQ(::send(peer.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  // What one call brings, from below or at the peer.
  static std::string Receive(const UniqueFd& from) {
    std::string text(1U << 20U, '\0');
    const ssize_t n = ::recv(from.get(), text.data(), text.size(), 0);
    return n > 0 ? text.substr(0, static_cast<std::size_t>(n)) : "";
  }

  struct Free {
    void operator()(BIO* one) const { BIO_free(one); }
  };
  UniqueFd own;
  UniqueFd peer;
  std::unique_ptr<SocketBio> socket;
  std::unique_ptr<BIO, Free> bio;
};

TEST_F(SocketBioTest, WhatIsWrittenLeavesTogether) {
  EXPECT_EQ(Write("one "), 4);
  EXPECT_EQ(Write("two"), 3);
  EXPECT_EQ(Receive(peer), "");
  EXPECT_EQ(socket->unsent(), 7);
  EXPECT_TRUE(socket->Flush());
  EXPECT_EQ(Receive(peer), "one two");
  EXPECT_EQ(socket->unsent(), 0);
}

TEST_F(SocketBioTest, IsFullAfterSevenRecords) {
  const std::string record(5U + (16U << 10U) + 17U, 'r');
  for (int i = 0; i < 7; ++i) {
    EXPECT_FALSE(socket->full()) << i;
    Write(record);
  }
  EXPECT_TRUE(socket->full());
}

TEST_F(SocketBioTest, WhatTheSocketDoesNotTakeStaysFirst) {
  const std::string packet(64U << 10U, 'p');
  while (::send(own.get(), packet.data(), packet.size(), 0) > 0) {
  }
  Write("first");
  EXPECT_FALSE(socket->Flush());
  EXPECT_EQ(errno, EAGAIN);
  Write(", second");
  EXPECT_EQ(socket->unsent(), 13);
  while (Receive(peer) == packet) {
  }
  EXPECT_TRUE(socket->Flush());
  EXPECT_EQ(Receive(peer), "first, second");
}

TEST_F(SocketBioTest, APeerThatIsGoneIsAnError) {
  Write("bytes");
  peer = UniqueFd();
  EXPECT_FALSE(socket->Flush());
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(SocketBioTest, HasALimitToWhatWaits) {
  const std::string packet(64U << 10U, 'p');
  int taken = 0;
  while (taken < 100 && Write(packet) > 0)
    ++taken;
  EXPECT_EQ(taken, 4);
  EXPECT_NE(BIO_should_write(bio.get()), 0);
}

TEST_F(SocketBioTest, ReadsAheadWhatHasArrived) {
  PeerSends("head and more");
  EXPECT_EQ(Read(4), "head");
  EXPECT_TRUE(socket->has_unread());
  PeerSends("later");
  EXPECT_EQ(Read(5), " and ");
  EXPECT_EQ(Read(100), "more");
  EXPECT_FALSE(socket->has_unread());
  EXPECT_EQ(Read(100), "later");
}

TEST_F(SocketBioTest, TakesNoMoreThanIsAskedForIfItMustNot) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const UniqueFd below(ends[0]);
  peer = UniqueFd(ends[1]);
  SocketBio exact(below.get());
  exact.ReadAhead(false);
  bio.reset(exact.MakeBio());
  PeerSends("record, and what follows");
  EXPECT_EQ(Read(6), "record");
  EXPECT_FALSE(exact.has_unread());
  EXPECT_EQ(Receive(below), ", and what follows");
  bio.reset();
}

TEST_F(SocketBioTest, NothingYetIsNoEnd) {
  EXPECT_EQ(Read(10), "");
  EXPECT_NE(BIO_should_read(bio.get()), 0);
  EXPECT_EQ(BIO_eof(bio.get()), 0);
  peer = UniqueFd();
  EXPECT_EQ(Read(10), "");
  EXPECT_EQ(BIO_should_read(bio.get()), 0);
  EXPECT_EQ(BIO_eof(bio.get()), 1);
}

}  // namespace
}  // namespace optcache::net
