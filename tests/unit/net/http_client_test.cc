#include "net/http_client.h"

#include <optional>

#include <gtest/gtest.h>

#include "net/http_server.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listening = ListenHttp(loop, "127.0.0.1:0", {},
                                [this](const HttpRequest& request, HttpResponder responder) {
                                  requests.push_back(request);
                                  handler(request, std::move(responder));
                                });
    ASSERT_TRUE(listening.has_value());
    server = std::move(*listening);
    base = "http://127.0.0.1:" + std::to_string(server->port());
  }
  Result<HttpResponse> Fetch(HttpRequest request, Duration timeout = seconds(20)) {
    std::optional<Result<HttpResponse>> result;
    client->Send(std::move(request), timeout,
                 [&](Result<HttpResponse> response) { result = std::move(response); });
    EXPECT_FALSE(result.has_value());  // Not from within Send.
    RunUntil(loop, [&] { return result.has_value(); });
    return result.value_or(Error(Code::kInternal, "no callback"));
  }

  EventLoop loop;
  std::vector<HttpRequest> requests;
  HttpHandler handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, "hello"));
  };
  std::unique_ptr<HttpServer> server;
  std::string base;
  std::unique_ptr<HttpClient> client =
      MakeHttpClient(loop, {.max_body_bytes = 1_MiB, .max_in_flight = 4});
};

TEST_F(HttpClientTest, SendsWhatItIsGivenAndGivesBackWhatCame) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond({.status = 201, .headers = {{"X-Version", "7"}}, .body = "made"});
  };
  const auto response = Fetch({.method = "POST",
                               .url = base + "/v1/report?node=a%20b",
                               .headers = {{"Content-Type", "application/json"}, {"X-A", "b"}},
                               .body = "{\"x\":1}"});
  ASSERT_TRUE(response.has_value()) << response.error().ToString();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(FindHeader(response->headers, "x-version"), "7");
  EXPECT_EQ(response->body, "made");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].path(), "/v1/report");
  EXPECT_EQ(requests[0].query("node"), "a b");
  EXPECT_EQ(FindHeader(requests[0].headers, "content-type"), "application/json");
  EXPECT_EQ(FindHeader(requests[0].headers, "x-a"), "b");
  EXPECT_EQ(requests[0].body, "{\"x\":1}");
}

TEST_F(HttpClientTest, ALargeBodyNeedNotBeCopied) {
  const SharedBytes body(std::string(3'000'000, 'x') + "the end");
  const auto response = Fetch({.method = "PUT", .url = base + "/", .shared_body = body});
  ASSERT_TRUE(response.has_value()) << response.error().ToString();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_TRUE(requests[0].body == body.view());
  EXPECT_EQ(ContentLength(requests[0].headers), body.size());
}

TEST_F(HttpClientTest, ErrorsOfTheServerAreResponses) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(503, "later"));
  };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 503);
  EXPECT_EQ(response->body, "later");
}

TEST_F(HttpClientTest, DoesNotFollowRedirects) {
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond({.status = 307, .headers = {{"Location", base + "/elsewhere"}}});
  };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_TRUE(response.has_value()) << response.error().ToString();
  EXPECT_EQ(response->status, 307);
  EXPECT_EQ(FindHeader(response->headers, "Location"), base + "/elsewhere");
  EXPECT_EQ(requests.size(), 1U);
}

TEST_F(HttpClientTest, WaitsForALongPollAndNoLonger) {
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting.push_back(respond); };
  const auto response = Fetch({.url = base + "/poll"}, milliseconds(50));
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(response.error().message(), base + "/poll: no response in time");
  // The server sees that nobody waits any more.
  RunUntil(loop, [&] { return !waiting.empty() && waiting[0].abandoned(); });
}

TEST_F(HttpClientTest, NobodyListens) {
  server.reset();
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_TRUE(response.error().message().starts_with(base + "/: "));
}

TEST_F(HttpClientTest, AServerThatHangsUpIsUnavailable) {
  handler = [&](const HttpRequest&, const HttpResponder&) { server.reset(); };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
}

TEST_F(HttpClientTest, TooLongABodyIsRefused) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, std::string(3 << 20U, 'x')));
  };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kResourceExhausted);
}

TEST_F(HttpClientTest, ABodyOfExactlyTheLimitIsTaken) {
  const std::string body(1 << 20U, 'y');
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, body));
  };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_TRUE(response.has_value()) << response.error().ToString();
  EXPECT_TRUE(response->body == body);
}

TEST_F(HttpClientTest, NotAUrl) {
  for (const std::string url : {"", "nonsense", "ftp://host/", "http://"}) {
    const auto response = Fetch({.url = url});
    ASSERT_FALSE(response.has_value()) << url;
    EXPECT_EQ(response.error().code(), Code::kInvalidArgument) << url;
  }
}

TEST_F(HttpClientTest, AHostMayBeAnIpv6Address) {
  auto six = ListenHttp(loop, "[::1]:0", {}, handler);
  if (!six) GTEST_SKIP() << "this machine has no IPv6: " << six.error().message();
  const auto response = Fetch({.url = "http://[::1]:" + std::to_string((*six)->port()) + "/"});
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(response->body, "hello");
}

TEST_F(HttpClientTest, EverywhereIsIpv6AndIpv4) {
  std::vector<std::string> peers;
  handler = [&](const HttpRequest& request, const HttpResponder& respond) {
    peers.push_back(request.peer.address.substr(0, request.peer.address.rfind(':')));
    respond(HttpResponse::Text(200, "hello"));
  };
  const auto everywhere = ListenHttp(loop, "*:0", {}, handler);
  ASSERT_TRUE(everywhere) << everywhere.error().message();
  const std::string port = std::to_string((*everywhere)->port());
  EXPECT_TRUE(Fetch({.url = "http://127.0.0.1:" + port + "/"}));
  EXPECT_EQ(peers, std::vector<std::string>{"127.0.0.1"});
  if (!ListenHttp(loop, "[::1]:0", {}, handler)) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_TRUE(Fetch({.url = "http://[::1]:" + port + "/"}));
  EXPECT_EQ(peers.back(), "[::1]");
}

TEST_F(HttpClientTest, OnlySoManyAtATime) {
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting.push_back(respond); };
  int good = 0;
  std::vector<Status> bad;
  for (int i = 0; i < 6; ++i) {
    client->Send({.url = base + "/poll"}, seconds(20), [&](const Result<HttpResponse>& response) {
      if (response) {
        ++good;
      } else {
        bad.push_back(response.error());
      }
    });
  }
  RunUntil(loop, [&] { return bad.size() == 2 && waiting.size() == 4; });
  EXPECT_EQ(bad[0].code(), Code::kResourceExhausted);
  for (const HttpResponder& respond : waiting)
    respond(HttpResponse::Text(200, ""));
  RunUntil(loop, [&] { return good == 4; });
}

TEST_F(HttpClientTest, NothingIsCalledAfterItsDeath) {
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting.push_back(respond); };
  const auto fail = [](const Result<HttpResponse>&) { FAIL() << "called after its death"; };
  client->Send({.url = base + "/poll"}, seconds(20), fail);
  RunUntil(loop, [&] { return waiting.size() == 1; });
  client->Send({.url = "nonsense"}, seconds(20), fail);
  client.reset();
  RunUntil(loop, [&] { return waiting[0].abandoned(); });
}

}  // namespace
}  // namespace optcache::net
