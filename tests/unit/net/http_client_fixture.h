#pragma once

// A server, and a client of it by TCP or by a Unix socket.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/http_client.h"
#include "net/http_server.h"
#include "support/temp_dir.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {

class HttpClientFixture : public testing::Test {
 protected:
  explicit HttpClientFixture(bool unix_socket)
      : socket(unix_socket ? folder.Join("control.sock") : std::string()) {
    client = MakeClient();
  }
  void SetUp() override {
    auto listening = ListenHttp(loop, socket.empty() ? "127.0.0.1:0" : "unix:" + socket, {},
                                [this](const HttpRequest& request, HttpResponder responder) {
                                  requests.push_back(request);
                                  handler(request, std::move(responder));
                                });
    ASSERT_TRUE(listening) << listening.error().ToString();
    server = std::move(*listening);
    base = socket.empty() ? "http://127.0.0.1:" + std::to_string(server->port()) : "unix:" + socket;
  }
  std::unique_ptr<HttpClient> MakeClient() {
    return MakeHttpClient(loop,
                          {.max_body_bytes = 1_MiB, .max_in_flight = 4, .unix_socket = socket});
  }
  Result<HttpResponse> Fetch(HttpRequest request, Duration timeout = kPatience) {
    std::optional<Result<HttpResponse>> result;
    client->Send(std::move(request), timeout,
                 [&](Result<HttpResponse> response) { result = std::move(response); });
    EXPECT_FALSE(result.has_value());  // Not from within Send.
    RunUntil(loop, [&] { return result.has_value(); });
    return result.value_or(Error(Code::kInternal, "no callback"));
  }
  // Requests wait there instead of being answered.
  void LetWait() {
    handler = [this](const HttpRequest&, const HttpResponder& respond) {
      waiting.push_back(respond);
    };
  }

  const TempDir folder;
  const std::string socket;  // empty: by TCP
  EventLoop loop;
  std::vector<HttpRequest> requests;
  std::vector<HttpResponder> waiting;
  HttpHandler handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, "hello"));
  };
  std::unique_ptr<HttpServer> server;
  std::string base;
  std::unique_ptr<HttpClient> client;
};

}  // namespace optcache::net
