// Clients of HttpServer that take their answer slowly, or not at all.

#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "support/growing_deadline.h"
#include "unit/net/http_body_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

// By its length alone the answer would have days.
TEST_F(HttpPiecesTest, AClientThatTakesNothingIsClosedHoweverLongTheBody) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond({.source = std::make_shared<LongSource>(1024_GiB)});
  };
  Start({.write_deadline = milliseconds(50)});
  const RawClient client(server->port());
  client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  RunUntil(loop, [&] { return Count("optcache_http_responses_total", "200") == 1; });
  RunUntilNoConnections();
}

// A client that took what there is would let the server wait only now and then. This one takes less
// in each turn of the loop than the server offers, and its pauses are not what it is closed for.
TEST_F(HttpPiecesTest, AClientThatTakesALongBodySlowlyHasItsTimeAndNoMore) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond({.source = std::make_shared<LongSource>(1024_GiB)});
  };
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(50), [&](Duration deadline) {
    Start({.write_deadline = deadline, .slowest = 1048576_GiB});
    const RawClient client(server->port());
    client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
    std::array<char, 16384> some;
    Duration longest_pause{};
    MonotonicTime taken = SystemClock().Now();
    RunUntil(loop, [&] {
      const ssize_t n = ::recv(client.fd(), some.data(), some.size(), MSG_DONTWAIT);
      if (n <= 0) return n == 0 || errno != EAGAIN;
      longest_pause = std::max<Duration>(longest_pause, SystemClock().Now() - taken);
      taken = SystemClock().Now();
      return false;
    });
    EXPECT_EQ(Count("optcache_http_open_connections"), 0);
    return longest_pause < deadline / 2;
  }));
}

class HttpSlowClientTest : public HttpPiecesTest {
 protected:
  // By any other limit the client would be closed within milliseconds.
  void StartPatient(Duration stall, ByteCount body) {
    handler = [body](const HttpRequest&, const HttpResponder& respond) {
      respond({.source = std::make_shared<LongSource>(body)});
    };
    Start({.write_deadline = milliseconds(20),
           .slowest = 2048_GiB,
           .stall_deadline = stall,
           .idle_deadline = milliseconds(20)});
  }
  void RunUntilAnswered() {
    RunUntil(loop, [&] { return Count("optcache_http_responses_total", "200") == 1; });
  }
  double open() const { return Count("optcache_http_open_connections"); }
};

TEST_F(HttpSlowClientTest, HasItsAnswerHoweverLongItTakes) {
  StartPatient(kPatience, 64_MiB);
  const RawClient client(server->port());
  client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")));
  RunUntilAnswered();
  RunFor(loop, milliseconds(100));
  EXPECT_GT(ReadToEnd(client).size(), 64_MiB);
}

TEST_F(HttpSlowClientTest, IsClosedWhenItHasStopped) {
  StartPatient(milliseconds(50), 1024_GiB);
  const RawClient client(server->port());
  client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  RunUntilAnswered();
  RunUntilNoConnections();
}

// The kernel has much more of the answer than the client takes here, and no room for the rest.
TEST_F(HttpSlowClientTest, IsNotClosedWhileItTakesAByte) {
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(160), [&](Duration stall) {
    StartPatient(stall, 1024_GiB);
    const RawClient client(server->port());
    const int small = 4096;
    ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
    std::array<char, 8192> some;
    for (int i = 0; i < 64; ++i) {
      RunFor(loop, stall / 16);
      (void)::recv(client.fd(), some.data(), some.size(), MSG_DONTWAIT);
    }
    return open() == 1;
  }));
}

// All of the answer is the kernel's, and the connection waits for a request.
TEST_F(HttpSlowClientTest, IsNotIdleBeforeItHasItsAnswer) {
  StartPatient(kPatience, 300'000);
  const RawClient client(server->port());
  const int small = 4096;
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  RunUntilAnswered();
  RunFor(loop, milliseconds(100));
  EXPECT_EQ(open(), 1);
}

int KernelsTimeout(std::uint16_t client_port) {
  int timeout = -1;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in peer = {};
    socklen_t length = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != client_port) continue;
    length = sizeof(timeout);
    EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &length), 0);
  }
  return timeout;
}

// With it, the kernel would close a client that has no room for half a minute.
TEST_F(HttpSlowClientTest, HasNoDeadlineOfTheKernels) {
  StartPatient(kPatience, 1024_GiB);
  const RawClient client(server->port());
  sockaddr_in own = {};
  socklen_t length = sizeof(own);
  ASSERT_EQ(::getsockname(client.fd(), reinterpret_cast<sockaddr*>(&own), &length), 0);
  client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  RunUntilAnswered();
  EXPECT_EQ(KernelsTimeout(ntohs(own.sin_port)), 0);
}

TEST_F(HttpPiecesTest, TheTimeInWhichASourceIsReadIsNotTheClients) {
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(20), [&](Duration write_deadline) {
    jobs.clear();
    source = std::make_shared<StringSource>("hello");
    StartBlocking({.write_deadline = write_deadline});
    const RawClient client(server->port());
    client.Send(AsBytes(std::string("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")));
    RunUntil(loop, [&] {
      return !jobs.empty() || (Count("optcache_http_responses_total") == 1 &&
                               Count("optcache_http_open_connections") == 0);
    });
    if (jobs.empty()) return false;
    RunFor(loop, 3 * write_deadline);
    DoOne();
    return ReadToEnd(client).ends_with("hello");
  }));
}

}  // namespace
}  // namespace optcache::net
