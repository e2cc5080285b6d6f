#include "handoff/internal/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache::handoff::internal {
namespace {

using std::chrono::seconds;

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    client_ = UniqueFd(fds[1]);
    connection_.emplace(1, UniqueFd(fds[0]), clock_.Now());
  }

  void Say(ByteSpan bytes) {
    ASSERT_EQ(::send(client_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(connection_->Read(), Connection::ReadResult::kSome);
  }
  void Queue(std::size_t bytes) {
    connection_->output.Push({.owned = FrameBytes(bytes), .pinned = {}, .pin = {}});
  }

  ManualClock clock_;
  UniqueFd client_;
  std::optional<Connection> connection_;
};

TEST_F(ConnectionTest, KnowsWhoIsThere) {
  EXPECT_EQ(connection_->peer.pid, ::getpid());
  EXPECT_EQ(connection_->peer.uid, ::getuid());
}

TEST_F(ConnectionTest, TellsNothingToReadFromTheEnd) {
  EXPECT_EQ(connection_->Read(), Connection::ReadResult::kNothing);
  client_.Reset();
  EXPECT_EQ(connection_->Read(), Connection::ReadResult::kClosed);
}

TEST_F(ConnectionTest, TakesNoFrameWhileAnswersWait) {
  const FrameBytes frame = EncodeClientFrame(1, Hello{});
  Queue(kMaxQueuedBytes + 1);
  Say(frame);
  EXPECT_FALSE(connection_->NextFrame()->has_value());
  EXPECT_EQ(connection_->Interest(), EPOLLOUT);

  connection_->output.Clear();
  EXPECT_NE(connection_->Interest() & EPOLLOUT, 0U) << "the frame still waits to be taken";
  EXPECT_TRUE(connection_->NextFrame()->has_value());
  EXPECT_FALSE(connection_->NextFrame()->has_value());
  EXPECT_EQ(connection_->Interest(), EPOLLIN);
}

TEST_F(ConnectionTest, WantsHelloWithinItsDeadline) {
  clock_.Advance(kFrameDeadline - seconds(1));
  EXPECT_TRUE(connection_->CheckPace(clock_.Now()).ok());
  clock_.Advance(seconds(1));
  EXPECT_FALSE(connection_->CheckPace(clock_.Now()).ok());
}

TEST_F(ConnectionTest, WantsTheEndOfAFrameWithinItsDeadline) {
  connection_->state = Connection::State::kOpen;
  const FrameBytes frame = EncodeClientFrame(1, OpenRequest{.name = "x"});
  Say(ByteSpan(frame).first(5));
  EXPECT_FALSE(connection_->NextFrame()->has_value());
  EXPECT_TRUE(connection_->CheckPace(clock_.Now()).ok());
  clock_.Advance(kFrameDeadline);
  EXPECT_FALSE(connection_->CheckPace(clock_.Now()).ok());
}

TEST_F(ConnectionTest, MeasuresEachFrameAlone) {
  connection_->state = Connection::State::kOpen;
  const FrameBytes frame = EncodeClientFrame(1, OpenRequest{.name = "x"});
  Say(ByteSpan(frame).first(5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(connection_->NextFrame()->has_value());
    EXPECT_TRUE(connection_->CheckPace(clock_.Now()).ok());
    clock_.Advance(kFrameDeadline);
    Say(ByteSpan(frame).subspan(5));
    Say(ByteSpan(frame).first(5));
    EXPECT_TRUE(connection_->NextFrame()->has_value());
  }
  EXPECT_TRUE(connection_->CheckPace(clock_.Now()).ok());
}

TEST_F(ConnectionTest, WantsItsAnswersReadWithinTheirDeadline) {
  connection_->state = Connection::State::kOpen;
  Queue(kMaxQueuedBytes * 4);
  EXPECT_TRUE(connection_->Write(clock_.Now()));
  EXPECT_TRUE(connection_->CheckPace(clock_.Now()).ok());
  clock_.Advance(kWriteDeadline);
  EXPECT_FALSE(connection_->CheckPace(clock_.Now()).ok());
}

TEST_F(ConnectionTest, GivenUpHearsNothingAndEndsItsSide) {
  connection_->GiveUp();
  std::array<char, 8> bytes{};
  EXPECT_EQ(::recv(client_.get(), bytes.data(), bytes.size(), 0), 0);
  Say(EncodeClientFrame(1, Hello{}));
  EXPECT_FALSE(connection_->NextFrame()->has_value());
  EXPECT_EQ(connection_->Interest(), EPOLLIN);
}

}  // namespace
}  // namespace optcache::handoff::internal
