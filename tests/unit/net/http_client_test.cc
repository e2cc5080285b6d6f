// By TCP alone; what all clients do is in http_client_contract_test.cc.

#include "net/http_client.h"

#include <gtest/gtest.h>

#include "unit/net/http_client_fixture.h"

namespace optcache::net {
namespace {

class HttpClientTest : public HttpClientFixture {
 protected:
  HttpClientTest() : HttpClientFixture(/*unix_socket=*/false) {}
};

TEST_F(HttpClientTest, NobodyListens) {
  server.reset();
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_TRUE(response.error().message().starts_with(base + "/: "));
}

TEST_F(HttpClientTest, NotAUrl) {
  for (const std::string url : {"", "nonsense", "ftp://host/", "http://"}) {
    const auto response = Fetch({.url = url});
    ASSERT_FALSE(response) << url;
    EXPECT_EQ(response.error().code(), Code::kInvalidArgument) << url;
  }
}

TEST_F(HttpClientTest, AHostMayBeAnIpv6Address) {
  auto six = ListenHttp(loop, "[::1]:0", {}, handler);
  if (!six) GTEST_SKIP() << "this machine has no IPv6: " << six.error().message();
  const auto response = Fetch({.url = "http://[::1]:" + std::to_string((*six)->port()) + "/"});
  ASSERT_TRUE(response) << response.error().message();
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

}  // namespace
}  // namespace optcache::net
