// Bodies of HttpServer's requests that are asked about first, and bodies in pieces.

#include "net/http_body.h"

#include <netinet/tcp.h>

#include <array>
#include <deque>
#include <optional>

#include "support/growing_deadline.h"
#include "unit/net/http_server_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// --- Bodies that are asked about first ---------------------------------------------------------

class HttpHeadTest : public HttpServerTest {
 protected:
  void StartChecking(HttpServerOptions options = {}) {
    options.check_head = [this](const HttpRequest& head,
                                std::function<void(HttpHeadRuling)> decide) {
      heads.push_back(head);
      decisions.push_back(std::move(decide));
    };
    Start(std::move(options));
  }
  void RunUntilAsked() {
    RunUntil(loop, [&] { return !decisions.empty(); });
  }
  static std::string Put(const std::string& more = "") {
    return "PUT /big HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nConnection: close\r\n" +
           more + "\r\n";
  }

  std::vector<HttpRequest> heads;
  std::vector<std::function<void(HttpHeadRuling)>> decisions;
};

TEST_F(HttpHeadTest, WhoIsRefusedIsToldBeforeTheBodyCame) {
  StartChecking();
  const RawClient client(server->port());
  client.Send(AsBytes(Put("Authorization: Bearer bad\r\n")));
  RunUntilAsked();
  EXPECT_EQ(FindHeader(heads[0].headers, "authorization"), "Bearer bad");
  EXPECT_EQ(heads[0].body, "");
  decisions[0]({.refusal = HttpResponse::Text(401, "who are you?\n")});
  std::string answer;
  RunUntil(loop, [&] {
    std::array<char, 512> some;
    const ssize_t n = ::recv(client.fd(), some.data(), some.size(), MSG_DONTWAIT);
    if (n > 0) answer.append(some.data(), static_cast<std::size_t>(n));
    return answer.ends_with("who are you?\n");
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 401 ")) << answer;
  EXPECT_TRUE(requests.empty());
}

TEST_F(HttpHeadTest, WhatIsAllowedIsReadAndHandled) {
  StartChecking();
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  auto hold = std::make_shared<int>(1);
  const std::weak_ptr<int> held = hold;
  decisions[0]({.hold = std::move(hold)});
  client.Send(AsBytes(std::string(1'000'000, 'x')));
  EXPECT_TRUE(ReadToEnd(client).ends_with("hello\n"));
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].body.size(), 1'000'000U);
  EXPECT_TRUE(held.expired());
}

TEST_F(HttpHeadTest, TheHoldEndsWithAClientThatGoes) {
  StartChecking();
  RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  auto hold = std::make_shared<int>(1);
  const std::weak_ptr<int> held = hold;
  decisions[0]({.hold = std::move(hold)});
  client.Close();
  RunUntil(loop, [&] { return held.expired(); });
  EXPECT_TRUE(requests.empty());
}

TEST_F(HttpHeadTest, AClientThatAsksFirstIsToldToGoOn) {
  StartChecking();
  const RawClient client(server->port());
  client.Send(AsBytes(Put("Expect: 100-continue\r\n")));
  RunUntilAsked();
  decisions[0]({});
  std::string answer(25, '\0');
  RunUntil(loop, [&] {
    return ::recv(client.fd(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_PEEK) == 25;
  });
  EXPECT_EQ(answer, "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send(AsBytes(std::string(1'000'000, 'x')));
  EXPECT_TRUE(ReadToEnd(client).ends_with("hello\n"));
}

TEST_F(HttpHeadTest, NobodyIsAskedAboutWhatHasNoBody) {
  StartChecking();
  EXPECT_TRUE(
      Exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ends_with("hello\n"));
  EXPECT_TRUE(heads.empty());
}

TEST_F(HttpHeadTest, WithoutADecisionInTimeItIsAnsweredSo) {
  StartChecking({.response_deadline = milliseconds(20)});
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  EXPECT_TRUE(ReadToEnd(client).starts_with("HTTP/1.1 503 "));
  decisions.at(0)({});  // Too late: no effect.
}

TEST_F(HttpHeadTest, TooLongABodyIsRefusedByItsLength) {
  StartChecking({.max_body_bytes = 1000});
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  EXPECT_TRUE(ReadToEnd(client).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(heads.empty());
}

// --- Bodies in pieces ---------------------------------------------------------------------------

class StringSink final : public HttpBodySink {
 public:
  Status Write(std::string_view bytes) override {
    if (!status.ok()) return status;
    ++pieces;
    all += bytes;
    return OkStatus();
  }
  std::string all;
  int pieces = 0;
  Status status;
};

class StringSource final : public HttpBodySource {
 public:
  explicit StringSource(std::string text) : text_(std::move(text)) {}
  ByteCount size() const override { return text_.size(); }
  Result<std::string> Read(std::size_t most) override {
    if (sent_ >= fails_at) return Error(Code::kDataLoss, "damaged");
    std::string piece = text_.substr(sent_, most);
    sent_ += piece.size();
    return piece;
  }
  std::size_t fails_at = ~std::size_t{0};

 private:
  std::string text_;
  std::size_t sent_ = 0;
};

class HttpPiecesTest : public HttpHeadTest {
 protected:
  HttpPiecesTest() {
    handler = [this](const HttpRequest& request, const HttpResponder& respond) {
      if (request.sink != nullptr) return respond(HttpResponse::Text(201, "taken\n"));
      respond({.headers = {{"ETag", "x"}}, .source = source});
    };
  }
  // Work off the loop, that ends when the test says so.
  void StartBlocking(HttpServerOptions options = {}) {
    options.blocking = [this](std::function<void()> job, std::function<void()> end) -> Status {
      if (refuses) return {Code::kResourceExhausted, "busy with others"};
      jobs.emplace_back(std::move(job), std::move(end));
      return OkStatus();
    };
    StartChecking(std::move(options));
  }
  void RunUntilJob() {
    RunUntil(loop, [&] { return !jobs.empty(); });
  }
  void DoOne() {
    const auto [job, end] = std::move(jobs.front());
    jobs.pop_front();
    job();
    end();
  }

  std::shared_ptr<StringSink> sink = std::make_shared<StringSink>();
  std::shared_ptr<StringSource> source;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs;
  bool refuses = false;
};

TEST_F(HttpPiecesTest, ABodyGoesToItsSink) {
  StartChecking();
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  decisions[0]({.sink = sink});
  client.Send(AsBytes(std::string(600'000, 'x')));
  RunUntil(loop, [&] { return sink->all.size() > 100'000; });
  client.Send(AsBytes(std::string(400'000, 'y')));
  EXPECT_TRUE(ReadToEnd(client).ends_with("taken\n"));
  EXPECT_TRUE(sink->all == std::string(600'000, 'x') + std::string(400'000, 'y'));
  EXPECT_GT(sink->pieces, 3);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].body, "");
  EXPECT_EQ(requests[0].sink, sink);
  EXPECT_EQ(requests[0].path(), "/big");
}

TEST_F(HttpPiecesTest, AChunkedBodyGoesThereToo) {
  StartChecking();
  const RawClient client(server->port());
  client.Send(
      AsBytes(std::string("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                          "Connection: close\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")));
  RunUntilAsked();
  decisions[0]({.sink = sink});
  EXPECT_TRUE(ReadToEnd(client).ends_with("taken\n"));
  EXPECT_EQ(sink->all, "abcdefg");
}

TEST_F(HttpPiecesTest, TheNextRequestOfTheConnectionIsAsAnyOther) {
  StartChecking();
  source = std::make_shared<StringSource>("hello");
  const RawClient client(server->port());
  client.Send(
      AsBytes(std::string("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                          "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")));
  RunUntilAsked();
  decisions[0]({.sink = sink});
  EXPECT_TRUE(ReadToEnd(client).ends_with("hello"));
  EXPECT_EQ(sink->all, "abc");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].sink, nullptr);
}

TEST_F(HttpPiecesTest, ASinkThatFailsEndsTheRequest) {
  sink->status = Status(Code::kResourceExhausted, "the volume is full");
  StartChecking();
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  decisions[0]({.sink = sink});
  client.Send(AsBytes(std::string(300'000, 'x')));
  const std::string answer = ReadToEnd(client);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_TRUE(answer.ends_with("the volume is full\n")) << answer;
  EXPECT_TRUE(requests.empty());
}

TEST_F(HttpPiecesTest, ASourceIsReadAsItIsTaken) {
  Start();
  std::string text(1'000'000, 'x');
  text += "the end";
  source = std::make_shared<StringSource>(text);
  const std::string answer = Exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 1000007\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + text));
}

TEST_F(HttpPiecesTest, ASourceIsNotReadForHead) {
  Start();
  source = std::make_shared<StringSource>("hello");
  source->fails_at = 0;
  const std::string answer = Exchange("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 5\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(HttpHeadTest, ARefusalOfHeadHasNoBody) {
  StartChecking();
  const RawClient client(server->port());
  client.Send(AsBytes(std::string("HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")));
  RunUntilAsked();
  decisions[0]({.refusal = HttpResponse::Text(403, "no\n")});
  const std::string answer = ReadToEnd(client);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

class LongSource final : public HttpBodySource {
 public:
  explicit LongSource(ByteCount size) : size_(size) {}
  ByteCount size() const override { return size_; }
  Result<std::string> Read(std::size_t most) override { return std::string(most, 'x'); }

 private:
  const ByteCount size_;
};

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

TEST_F(HttpPiecesTest, AClientThatTakesALongBodySlowlyHasItsTimeAndNoMore) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond({.source = std::make_shared<LongSource>(1_GiB)});
  };
  Start({.write_deadline = milliseconds(50), .slowest = 2048_GiB});
  EXPECT_LT(Exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n").size(), 1_GiB);
}

// --- Clients that take their answer slowly ----------------------------------------------------

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

TEST_F(HttpPiecesTest, ASourceThatGivesNothingEndsTheConnection) {
  source = std::make_shared<StringSource>("hello");
  StartBlocking({.write_deadline = std::chrono::hours(1), .response_deadline = milliseconds(20)});
  const std::string answer = Exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  EXPECT_EQ(jobs.size(), 1U);
}

TEST_F(HttpPiecesTest, ASourceThatFailsEndsTheConnectionBeforeTheEnd) {
  Start();
  source = std::make_shared<StringSource>(std::string(1'000'000, 'x'));
  source->fails_at = 500'000;
  const std::string answer = Exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 "));
  EXPECT_LT(answer.size(), 1'000'000U);
}

TEST_F(HttpPiecesTest, PiecesAreWrittenOffTheLoopOneAfterTheOther) {
  StartBlocking();
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  decisions[0]({.sink = sink});
  client.Send(AsBytes(std::string(300'000, 'x')));
  RunUntilJob();
  RunFor(loop, milliseconds(20));
  EXPECT_EQ(jobs.size(), 1U) << "the next is not read before this one is written";
  client.Send(AsBytes(std::string(700'000, 'x')));
  while (sink->all.size() < 1'000'000) {
    RunUntilJob();
    DoOne();
  }
  EXPECT_TRUE(ReadToEnd(client).ends_with("taken\n"));
}

TEST_F(HttpPiecesTest, AClientThatGoesWhileAPieceIsWrittenIsNobody) {
  StartBlocking();
  RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  auto hold = std::make_shared<int>(1);
  const std::weak_ptr<int> held = hold;
  decisions[0]({.hold = std::move(hold), .sink = sink});
  client.Send(AsBytes(std::string(300'000, 'x')));
  RunUntilJob();
  client.Close();
  server.reset();
  EXPECT_TRUE(held.expired());
  DoOne();
  EXPECT_TRUE(requests.empty());
}

TEST_F(HttpPiecesTest, WhoCannotBeServedNowIsToldSo) {
  StartBlocking();
  refuses = true;
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  decisions[0]({.sink = sink});
  client.Send(AsBytes(std::string(1'000'000, 'x')));
  EXPECT_TRUE(ReadToEnd(client).starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpPiecesTest, ALongBodyHasItsTimeAndNoMore) {
  StartChecking({.request_deadline = milliseconds(20), .slowest = 1'000'000});
  const RawClient client(server->port());
  client.Send(AsBytes(Put()));
  RunUntilAsked();
  const MonotonicTime begin = SystemClock().Now();
  decisions[0]({.sink = sink});
  EXPECT_TRUE(ReadToEnd(client).starts_with("HTTP/1.1 408 "));
  EXPECT_GE(SystemClock().Now() - begin, seconds(1)) << "a megabyte has a second";
}

}  // namespace
}  // namespace optcache::net
