#include "net/dialer.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "unit/net/full_listener.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

class DialerTest : public testing::Test {
 protected:
  Status DialAndFail(const std::string& address, DialOptions options = Patient()) {
    const auto connection = Dial(loop, address, std::move(options), handler);
    EXPECT_TRUE(handler->closed.empty());  // Not before Dial has returned.
    RunUntil(loop, [&] { return !handler->closed.empty(); });
    EXPECT_EQ(handler->opened, 0);
    return handler->closed.at(0);
  }

  EventLoop loop;
  std::shared_ptr<Recorder> handler = std::make_shared<Recorder>();
};

// A port on which nobody listens: bound, but not listening.
class DeadPort {
 public:
  DeadPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::uint16_t port_ = 0;
};

TEST_F(DialerTest, OpensByNameAndByNumber) {
  auto node = std::make_shared<Recorder>();
  auto server = Listen(loop, "127.0.0.1:0", {.name = "node-1"}, node);
  ASSERT_TRUE(server.has_value());
  const std::string port = std::to_string((*server)->port());
  const auto by_name = Dial(loop, "localhost:" + port, Patient(), handler);
  const auto by_number = Dial(loop, "127.0.0.1:" + port, Patient(), handler);
  RunUntil(loop, [&] { return handler->opened == 2 && node->opened == 2; });
  EXPECT_EQ(by_number->peer_name(), "node-1");
  EXPECT_EQ(by_number->peer_role(), wire::Role::kNode);
  EXPECT_EQ(by_number->address(), "127.0.0.1:" + port);
}

TEST_F(DialerTest, AUnixSocketThatHasNoRoomIsUnavailable) {
  const TempDir folder;
  const std::string path = folder.Join("node.sock");
  const FullListener full(path);
  const Status status = DialAndFail("unix:" + path);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "connect to unix:" + path + ": No buffer space available");
}

TEST_F(DialerTest, NobodyListens) {
  const DeadPort port;
  const Status status = DialAndFail(port.address());
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "connect to " + port.address() + ": Connection refused");
}

TEST_F(DialerTest, NoSuchSocketFile) {
  EXPECT_EQ(DialAndFail("unix:/nonexistent/node.sock").code(), Code::kUnavailable);
}

TEST_F(DialerTest, NotAnAddress) {
  EXPECT_EQ(DialAndFail("nonsense").code(), Code::kInvalidArgument);
}

TEST_F(DialerTest, AnUnknownHostIsUnavailable) {
  EXPECT_EQ(DialAndFail("host.invalid:80", Patient()).code(), Code::kUnavailable);
}

TEST_F(DialerTest, AServerThatDoesNotAcceptMeetsTheDeadline) {
  // A backlog that is full drops new connections silently.
  const DeadPort port;
  ASSERT_EQ(::listen(port.fd(), 0), 0);
  auto filler_handler = std::make_shared<Recorder>();
  const auto filler = Dial(loop, port.address(), Patient(), filler_handler);
  const auto filler2 = Dial(loop, port.address(), Patient(), filler_handler);
  const auto filler3 = Dial(loop, port.address(), Patient(), filler_handler);
  const Status status = DialAndFail(
      port.address(), {.connect_deadline = milliseconds(20), .welcome_deadline = milliseconds(20)});
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  for (const auto& each : {filler, filler2, filler3})
    each->Close(OkStatus());
  RunUntil(loop, [&] { return filler_handler->closed.size() == 3; });
}

TEST_F(DialerTest, AServerThatDoesNotAnswerMeetsTheDeadline) {
  const DeadPort port;
  ASSERT_EQ(::listen(port.fd(), 5), 0);
  const Status status = DialAndFail(
      port.address(), {.connect_deadline = kPatience, .welcome_deadline = milliseconds(20)});
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "Hello was not answered in time");
}

TEST_F(DialerTest, ARefusalIsTheReason) {
  auto server = Listen(loop, "127.0.0.1:0",
                       {.authorize = Immediately([](const wire::Hello&, const PeerInfo&) {
                          return Status(Code::kPermissionDenied, "unknown token");
                        })},
                       std::make_shared<Recorder>());
  ASSERT_TRUE(server.has_value());
  const Status status = DialAndFail((*server)->address());
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_EQ(status.message(), "the peer refused: unknown token");
}

TEST_F(DialerTest, CloseGivesUp) {
  auto node = std::make_shared<Recorder>();
  auto server = Listen(loop, "127.0.0.1:0", {}, node);
  const auto connection = Dial(loop, (*server)->address(), Patient(), handler);
  connection->Close(Status(Code::kCancelled, "changed my mind"));
  RunUntil(loop, [&] { return !handler->closed.empty(); });
  EXPECT_EQ(handler->closed.at(0).message(), "changed my mind");
  EXPECT_EQ(handler->opened, 0);
}

}  // namespace
}  // namespace optcache::net
