// Bodies of HttpServer's requests that are asked about first.

#include <array>

#include "unit/net/http_body_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

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

}  // namespace
}  // namespace optcache::net
