#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/http_server.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {

// A server whose handler a test replaces, and clients that send it bytes.
class HttpServerTest : public testing::Test {
 protected:
  void Start(HttpServerOptions options = {}) {
    auto listening = ListenHttp(loop, "127.0.0.1:0", options,
                                [this](const HttpRequest& request, HttpResponder responder) {
                                  requests.push_back(request);
                                  handler(request, std::move(responder));
                                });
    ASSERT_TRUE(listening.has_value()) << listening.error().ToString();
    server = std::move(*listening);
  }
  double Count(std::string_view wanted, std::string_view code = "") const {
    double found = 0;
    server->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == wanted && (code.empty() || labels.back().second == code)) found += value;
        });
    return found;
  }
  void RunUntilNoConnections() {
    RunUntil(loop, [&] { return Count("optcache_http_open_connections") == 0; });
  }
  // Sends a request that ends its connection and gives back all that came until then.
  std::string Exchange(const std::string& text) {
    const RawClient client(server->port());
    client.Send(AsBytes(text));
    return ReadToEnd(client);
  }
  // Reads while the loop turns.
  std::string ReadToEnd(const RawClient& client) {
    std::string text;
    std::vector<char> some(1 << 20U);
    RunUntil(loop, [&] {
      const ssize_t n = ::recv(client.fd(), some.data(), some.size(), MSG_DONTWAIT);
      if (n > 0) text.append(some.data(), static_cast<std::size_t>(n));
      return n == 0;
    });
    return text;
  }
  static std::string Text(const RawClient& client) {
    const auto bytes = client.ReadAll();
    return std::string(AsText(bytes));
  }

  EventLoop loop;
  std::vector<HttpRequest> requests;
  HttpHandler handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, "hello\n"));
  };
  std::unique_ptr<HttpServer> server;
};

}  // namespace optcache::net
