// By Unix sockets alone; what all clients do is in http_client_contract_test.cc.

#include "net/internal/unix_http_client.h"

#include <array>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "unit/net/full_listener.h"
#include "unit/net/http_client_fixture.h"

namespace optcache::net {
namespace {

class UnixHttpClientTest : public HttpClientFixture {
 protected:
  UnixHttpClientTest() : HttpClientFixture(/*unix_socket=*/true) {}

  // From a server that answers with these bytes and hangs up.
  Result<HttpResponse> FetchAnswer(std::string_view answer) {
    server.reset();
    const UniqueFd listening = UnixSocket(socket, ::bind);
    EXPECT_EQ(::listen(listening.get(), 1), 0);
    std::optional<Result<HttpResponse>> result;
    client->Send({.url = base + "/"}, kPatience,
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
};

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

}  // namespace
}  // namespace optcache::net
