#include "net/internal/unix_http_client.h"

#include <array>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "net/http_server.h"
#include "support/temp_dir.h"
#include "unit/net/full_listener.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class UnixHttpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listening =
        ListenHttp(loop, base, {}, [this](const HttpRequest& request, HttpResponder responder) {
          requests.push_back(request);
          handler(request, std::move(responder));
        });
    ASSERT_TRUE(listening) << listening.error().ToString();
    server = std::move(*listening);
  }
  Result<HttpResponse> Fetch(HttpRequest request, Duration timeout = seconds(20)) {
    std::optional<Result<HttpResponse>> result;
    client->Send(std::move(request), timeout,
                 [&](Result<HttpResponse> response) { result = std::move(response); });
    EXPECT_FALSE(result.has_value());  // Not from within Send.
    RunUntil(loop, [&] { return result.has_value(); });
    return result.value_or(Error(Code::kInternal, "no callback"));
  }

  // From a server that answers with these bytes and hangs up.
  Result<HttpResponse> FetchAnswer(std::string_view answer) {
    server.reset();
    const UniqueFd listening = UnixSocket(socket, ::bind);
    EXPECT_EQ(::listen(listening.get(), 1), 0);
    std::optional<Result<HttpResponse>> result;
    client->Send({.url = base + "/"}, seconds(20),
                 [&](Result<HttpResponse> response) { result = std::move(response); });
    std::string request;
    UniqueFd peer;
    RunUntil(loop, [&] {
      if (!peer.valid()) peer = UniqueFd(::accept(listening.get(), nullptr, nullptr));
      std::array<char, 4096> some = {};
      const ssize_t n = ::recv(peer.get(), some.data(), some.size(), MSG_DONTWAIT);
      if (n > 0) request.append(some.data(), static_cast<std::size_t>(n));
      return request.ends_with("\r\n\r\n");
    });
    EXPECT_EQ(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    peer.Reset();
    RunUntil(loop, [&] { return result.has_value(); });
    return result.value_or(Error(Code::kInternal, "no callback"));
  }

  const TempDir folder;
  const std::string socket = folder.Join("control.sock");
  const std::string base = "unix:" + socket;
  EventLoop loop;
  std::vector<HttpRequest> requests;
  HttpHandler handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, "hello"));
  };
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpClient> client =
      MakeHttpClient(loop, {.max_body_bytes = 1_MiB, .max_in_flight = 4, .unix_socket = socket});
};

TEST_F(UnixHttpClientTest, SendsWhatItIsGivenAndGivesBackWhatCame) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond({.status = 201, .headers = {{"X-Version", "7"}}, .body = "made"});
  };
  const auto response = Fetch({.method = "POST",
                               .url = base + "/v1/report?node=a%20b",
                               .headers = {{"Content-Type", "application/json"}, {"X-A", "b"}},
                               .body = "{\"x\":1}"});
  ASSERT_TRUE(response) << response.error().ToString();
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

TEST_F(UnixHttpClientTest, ALargeBodyNeedNotBeCopied) {
  const SharedBytes body(std::string(3'000'000, 'x') + "the end");
  const auto response = Fetch({.method = "PUT", .url = base + "/", .shared_body = body});
  ASSERT_TRUE(response) << response.error().ToString();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_TRUE(requests[0].body == body.view());
}

TEST_F(UnixHttpClientTest, ABodyOfExactlyTheLimitIsTakenAndNoLongerOne) {
  ByteCount size = 1_MiB;
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, std::string(size, 'y')));
  };
  const auto whole = Fetch({.url = base + "/"});
  ASSERT_TRUE(whole) << whole.error().ToString();
  EXPECT_EQ(whole->body.size(), size);
  ++size;
  const auto longer = Fetch({.url = base + "/"});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code(), Code::kResourceExhausted);
}

TEST_F(UnixHttpClientTest, WaitsForALongPollAndNoLonger) {
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting.push_back(respond); };
  const auto response = Fetch({.url = base + "/poll"}, milliseconds(50));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(response.error().message(), base + "/poll: no response in time");
  // The server sees that nobody waits any more.
  RunUntil(loop, [&] { return !waiting.empty() && waiting[0].abandoned(); });
}

TEST_F(UnixHttpClientTest, NobodyListens) {
  server.reset();
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_EQ(response.error().message(), base + "/: connect: No such file or directory");
}

TEST_F(UnixHttpClientTest, AServerThatHasNoRoomIsUnavailable) {
  server.reset();
  const FullListener full(socket);
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_EQ(response.error().message(), base + "/: connect: No buffer space available");
}

TEST_F(UnixHttpClientTest, AResponseToHeadHasNoBody) {
  const auto response = Fetch({.method = "HEAD", .url = base + "/"});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(FindHeader(response->headers, "content-length"), "5");
  EXPECT_EQ(response->body, "");
}

TEST_F(UnixHttpClientTest, ABodyThatEndsEarlyIsUnavailable) {
  const auto response = FetchAnswer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
}

TEST_F(UnixHttpClientTest, AHeadOverTheLimitIsRefused) {
  const auto response =
      FetchAnswer("HTTP/1.1 200 OK\r\nX: " + std::string(17'000, 'x') + "\r\n\r\n");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kResourceExhausted);
  EXPECT_NE(response.error().message().find("longer than 16.0 KiB"), std::string::npos)
      << response.error().message();
}

TEST_F(UnixHttpClientTest, ABodyInChunksOverTheLimitIsRefused) {
  client = MakeHttpClient(loop, {.max_body_bytes = 1_KiB, .unix_socket = socket});
  const auto response = FetchAnswer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" +
                                    std::string(2048, 'x') + "\r\n0\r\n\r\n");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kResourceExhausted);
}

TEST_F(UnixHttpClientTest, RefusesBytesThatWouldEndItsRequestLine) {
  for (const char* rest : {"/a b", "/a\r\nX: y", "/\t", "/\x7f"}) {
    const auto response = Fetch({.url = base + rest});
    ASSERT_FALSE(response) << rest;
    EXPECT_EQ(response.error().code(), Code::kInvalidArgument) << rest;
  }
  EXPECT_TRUE(requests.empty());
}

TEST_F(UnixHttpClientTest, ThePathOfItsSocketMayHaveASpace) {
  const std::string path = folder.Join("my state.sock");
  const auto there = ListenHttp(loop, "unix:" + path, {}, handler);
  ASSERT_TRUE(there) << there.error().ToString();
  client = MakeHttpClient(loop, {.unix_socket = path});
  const auto response = Fetch({.url = "unix:" + path + "/"});
  ASSERT_TRUE(response) << response.error().ToString();
}

TEST_F(UnixHttpClientTest, AServerThatHangsUpIsUnavailable) {
  handler = [&](const HttpRequest&, const HttpResponder&) { server.reset(); };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
}

TEST_F(UnixHttpClientTest, GoesNowhereElse) {
  for (const std::string& url :
       std::vector<std::string>{"", "http://127.0.0.1:1/", base, base + "x/", "unix:/other/"}) {
    const auto response = Fetch({.url = url});
    ASSERT_FALSE(response) << url;
    EXPECT_EQ(response.error().code(), Code::kInvalidArgument) << url;
  }
  EXPECT_TRUE(requests.empty());
}

TEST_F(UnixHttpClientTest, RefusesAPathThatIsTooLong) {
  const std::string path = "/" + std::string(200, 'x');
  client = MakeHttpClient(loop, {.unix_socket = path});
  const auto response = Fetch({.url = "unix:" + path + "/v1/status"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kInvalidArgument);
}

TEST_F(UnixHttpClientTest, HasNoStreams) {
  std::optional<Status> end;
  const auto stream = client->Stream({.url = base + "/"}, {},
                                     {.on_response = nullptr,
                                      .on_bytes = nullptr,
                                      .on_end = [&](const Status& status) { end = status; }});
  EXPECT_FALSE(end.has_value());
  RunUntil(loop, [&] { return end.has_value(); });
  EXPECT_EQ(end->code(), Code::kInvalidArgument);
}

TEST_F(UnixHttpClientTest, HasNoMoreInFlightThanItMay) {
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

TEST_F(UnixHttpClientTest, MayDieInACallback) {
  int ends = 0;
  for (const std::string& url : {base + "/", std::string("nonsense")}) {
    client = MakeHttpClient(loop, {.unix_socket = socket});
    client->Send({.url = url}, seconds(20), [&](const Result<HttpResponse>&) {
      client.reset();
      ++ends;
    });
    RunUntil(loop, [&] { return client == nullptr; });
  }
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting.push_back(respond); };
  client = MakeHttpClient(loop, {.unix_socket = socket});
  client->Send({.url = base + "/poll"}, milliseconds(20), [&](const Result<HttpResponse>&) {
    client.reset();
    ++ends;
  });
  RunUntil(loop, [&] { return client == nullptr; });
  EXPECT_EQ(ends, 3);
}

TEST_F(UnixHttpClientTest, NothingIsCalledAfterItsDeath) {
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
