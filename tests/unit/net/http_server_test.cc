#include "net/http_server.h"

#include <optional>

#include "base/log.h"
#include "unit/net/http_server_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

TEST_F(HttpServerTest, AnswersARequest) {
  Start();
  const std::string answer = Exchange(
      "POST /v1/report?node=7 HTTP/1.1\r\nHost: x\r\nX-A: b\r\nContent-Length: 4\r\n"
      "Connection: close\r\n\r\nbody");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].path(), "/v1/report");
  EXPECT_EQ(requests[0].query("node"), "7");
  EXPECT_EQ(FindHeader(requests[0].headers, "x-a"), "b");
  EXPECT_EQ(requests[0].body, "body");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nhello\n")) << answer;
  EXPECT_EQ(Count("optcache_http_responses_total", "200"), 1);
}

TEST_F(HttpServerTest, ServesRequestAfterRequestOnOneConnection) {
  Start();
  const std::string get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string answer =
      Exchange(get + get + "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(requests.size(), 3U);
  EXPECT_EQ(Count("optcache_http_responses_total", "200"), 3);
}

TEST_F(HttpServerTest, ReadsChunkedBodies) {
  Start();
  Exchange(
      "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].body, "abcdefg");
}

TEST_F(HttpServerTest, AnswersHeadWithoutABody) {
  Start();
  const std::string answer = Exchange("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 6\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, SaysNoLengthOfWhatIsNotModified) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond({.status = 304, .headers = {{"ETag", "\"a\""}}});
  };
  Start();
  for (const std::string method : {"GET", "HEAD"}) {
    const std::string answer = Exchange(method + " / HTTP/1.1\r\nHost: x\r\n\r\n" + method +
                                        " / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\nHTTP/1.1 304"))
        << answer;
    EXPECT_EQ(answer.find("Content-Length"), std::string::npos) << answer;
  }
}

TEST_F(HttpServerTest, TellsAClientOfTheOldVersionThatTheConnectionStays) {
  Start();
  const std::string answer = Exchange(
      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
      "GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(requests.size(), 2U);
  const std::size_t second = answer.rfind("HTTP/1.1 200");
  EXPECT_NE(answer.substr(0, second).find("Connection: keep-alive\r\n"), std::string::npos)
      << answer;
  EXPECT_NE(answer.substr(second).find("Connection: close\r\n"), std::string::npos) << answer;
}

TEST_F(HttpServerTest, MayShapeWhatItAnswersByItself) {
  const auto shape = [](int status, const std::string& why) {
    return HttpResponse::Text(status, "shaped: " + why);
  };
  handler = [](const HttpRequest&, const HttpResponder&) {};
  Start({.max_header_bytes = 1000, .own_answer = shape});
  EXPECT_NE(Exchange("nonsense\r\n\r\n").find("\r\n\r\nshaped: "), std::string::npos);
  EXPECT_NE(
      Exchange("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n").find("shaped: "),
      std::string::npos);
  EXPECT_TRUE(Exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
                  .ends_with("shaped: the request was dropped"));
}

TEST_F(HttpServerTest, WhatIsNotHttpIsABadRequest) {
  Start();
  EXPECT_TRUE(Exchange("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(requests.empty());
}

TEST_F(HttpServerTest, TooLongAHeaderIsRefused) {
  Start({.max_header_bytes = 1000});
  EXPECT_TRUE(Exchange("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n")
                  .starts_with("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, TooLongABodyIsRefusedBeforeItIsRead) {
  Start({.max_body_bytes = 1000});
  EXPECT_TRUE(Exchange("PUT / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'x'))
                  .starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(Exchange("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
                       std::string(2000, 'x'))
                  .starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(requests.empty());
}

TEST_F(HttpServerTest, HalfARequestMeetsTheDeadline) {
  Start({.request_deadline = milliseconds(20)});
  const RawClient client(server->port());
  client.Send(AsBytes("GET / HTTP/1.1\r\nHo"));
  RunUntil(loop, [&] { return Count("optcache_http_responses_total", "408") == 1; });
  ::shutdown(client.fd(), SHUT_WR);
  RunUntilNoConnections();
  EXPECT_TRUE(Text(client).starts_with("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, ASilentClientIsClosed) {
  Start({.idle_deadline = milliseconds(20)});
  const RawClient client(server->port());
  EXPECT_EQ(ReadToEnd(client), "");
}

TEST_F(HttpServerTest, AResponseMayComeLater) {
  std::optional<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting = respond; };
  Start();
  const RawClient client(server->port());
  client.Send(AsBytes("GET /poll HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  RunUntil(loop, [&] { return waiting.has_value(); });
  EXPECT_FALSE(waiting->abandoned());
  (*waiting)(HttpResponse::Json(200, "{}"));
  (*waiting)(HttpResponse::Json(500, "again"));  // Has no effect.
  ::shutdown(client.fd(), SHUT_WR);
  RunUntilNoConnections();
  EXPECT_TRUE(Text(client).ends_with("{}"));
  EXPECT_TRUE(waiting->abandoned());
}

TEST_F(HttpServerTest, AHandlerThatTakesTooLongIsUnavailable) {
  std::optional<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting = respond; };
  Start({.response_deadline = milliseconds(20)});
  const RawClient client(server->port());
  client.Send(AsBytes("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  RunUntil(loop, [&] { return Count("optcache_http_responses_total", "503") == 1; });
  (*waiting)(HttpResponse::Text(200, "too late"));
  ::shutdown(client.fd(), SHUT_WR);
  RunUntilNoConnections();
  EXPECT_TRUE(Text(client).starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, AClientThatGoesWhileItWaitsIsNoticed) {
  std::optional<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting = respond; };
  Start();
  RawClient client(server->port());
  client.Send(AsBytes("GET /poll HTTP/1.1\r\nHost: x\r\n\r\n"));
  RunUntil(loop, [&] { return waiting.has_value(); });
  client.Close();
  RunUntil(loop, [&] { return waiting->abandoned(); });
  RunUntilNoConnections();
  (*waiting)(HttpResponse::Text(200, "nobody hears this"));
}

TEST_F(HttpServerTest, ADroppedRequestIsAnError) {
  handler = [](const HttpRequest&, const HttpResponder&) {};
  Start();
  EXPECT_TRUE(Exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, OneClientTooManyIsTurnedAwayWhileOthersAreServed) {
  std::optional<HttpResponder> serving;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { serving = respond; };
  Start({.max_connections = 1});
  const RawClient first(server->port());
  first.Send(AsBytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  RunUntil(loop, [&] { return serving.has_value(); });
  const RawClient second(server->port());
  RunUntil(loop, [&] { return Count("optcache_http_refused_connections_total") == 1; });
  EXPECT_TRUE(Text(second).starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, OneClientTooManyTakesThePlaceOfWhoSaysNothingForLongest) {
  Start({.max_connections = 2});
  const RawClient silent(server->port());
  RunUntil(loop, [&] { return Count("optcache_http_open_connections") == 1; });
  const RawClient slow(server->port());
  RunUntil(loop, [&] { return Count("optcache_http_open_connections") == 2; });
  slow.Send(AsBytes("GET / HT"));
  EXPECT_TRUE(Exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").ends_with("hello\n"));
  EXPECT_EQ(ReadToEnd(silent), "");
  EXPECT_EQ(Count("optcache_http_refused_connections_total"), 1);
  slow.Send(AsBytes("TP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(ReadToEnd(slow).ends_with("hello\n"));
}

TEST_F(HttpServerTest, OneSourceDoesNotTakeThePlaceOfAnothers) {
  Start({.max_connections = 4});
  const RawClient good(server->port(), "127.0.0.2");
  RunUntil(loop, [&] { return Count("optcache_http_open_connections") == 1; });
  std::vector<RawClient> many;
  for (int i = 0; i < 12; ++i)
    many.emplace_back(server->port());
  RunUntil(loop, [&] { return Count("optcache_http_refused_connections_total") == 9; });
  good.Send(AsBytes("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(ReadToEnd(good).ends_with("hello\n"));
}

// Each is answered and then waits for its end.
TEST_F(HttpServerTest, OneSourceThatDoesNotCloseTakesThePlaceOfNoOther) {
  Start({.max_connections = 4});
  std::vector<RawClient> many;
  for (int i = 1; i <= 4; ++i) {
    many.emplace_back(server->port());
    many.back().Send(AsBytes("GET / HTTP/1.0\r\n\r\n"));
    RunUntil(loop, [&] { return Count("optcache_http_responses_total", "200") >= i; });
  }
  const RawClient good(server->port(), "127.0.0.2");
  good.Send(AsBytes("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(ReadToEnd(good).ends_with("hello\n"));
}

TEST_F(HttpServerTest, OneSourceThatDoesNotReadTakesThePlaceOfNoOther) {
  const auto body = std::make_shared<const std::string>(20'000'000, 'x');
  handler = [&](const HttpRequest& request, const HttpResponder& respond) {
    if (request.path() == "/page") return respond(HttpResponse::Text(200, "hello\n"));
    respond({.shared_body = body});
  };
  Start({.max_connections = 8, .write_deadline = std::chrono::minutes(5)});
  const RawClient idle(server->port(), "127.0.0.3");
  RunUntil(loop, [&] { return Count("optcache_http_open_connections") == 1; });
  std::vector<RawClient> many;
  for (int i = 1; i <= 7; ++i) {
    many.emplace_back(server->port());
    many.back().Send(AsBytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    RunUntil(loop, [&] { return Count("optcache_http_responses_total", "200") == i; });
  }
  const RawClient one_more(server->port());
  EXPECT_TRUE(ReadToEnd(one_more).starts_with("HTTP/1.1 503 ")) << "it has more than its share";
  const std::string page = "GET /page HTTP/1.1\r\nConnection: close\r\n\r\n";
  const RawClient good(server->port(), "127.0.0.2");
  good.Send(AsBytes(page));
  EXPECT_TRUE(ReadToEnd(good).ends_with("hello\n"));
  idle.Send(AsBytes(page));
  EXPECT_TRUE(ReadToEnd(idle).ends_with("hello\n")) << "it kept its place";
}

TEST_F(HttpServerTest, SaysWhichSourceHasMostConnections) {
  SetUpLog("net_test", LogLevel::kInfo, LogFormat::kText);
  Start({.label = "pages", .max_connections = 2});
  testing::internal::CaptureStderr();
  std::vector<RawClient> many;
  for (int i = 0; i < 5; ++i)
    many.emplace_back(server->port());
  RunUntil(loop, [&] { return Count("optcache_http_refused_connections_total") == 3; });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("source_of_most=127.0.0.1 connections_of_it=2"), std::string::npos) << log;
}

TEST_F(HttpServerTest, LargeResponsesArriveWhole) {
  const std::string large(20'000'000, 'z');
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, large));
  };
  Start();
  const std::string answer = Exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.ends_with(large));
}

TEST_F(HttpServerTest, MayDieWhileAClientWaits) {
  std::optional<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting = respond; };
  Start();
  const RawClient client(server->port());
  client.Send(AsBytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  RunUntil(loop, [&] { return waiting.has_value(); });
  server.reset();
  (*waiting)(HttpResponse::Text(200, ""));
  EXPECT_TRUE(waiting->abandoned());
  waiting.reset();
  EXPECT_EQ(Text(client), "");
}

TEST_F(HttpServerTest, APortInUseIsASentence) {
  Start();
  const auto second = ListenHttp(loop, "127.0.0.1:" + std::to_string(server->port()), {}, handler);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kConflict);
}

TEST_F(HttpServerTest, OneBodyServesMany) {
  const auto body = std::make_shared<const std::string>(5'000'000, 'x');
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond({.shared_body = body});
  };
  Start();
  for (int i = 0; i < 2; ++i) {
    const std::string answer = Exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_NE(answer.find("Content-Length: 5000000\r\n"), std::string::npos);
    EXPECT_TRUE(answer.ends_with(*body));
  }
  EXPECT_EQ(body.use_count(), 1);
}

}  // namespace
}  // namespace optcache::net
