// Bodies of HttpServer in pieces.

#include "net/http_body.h"

#include "unit/net/http_body_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
