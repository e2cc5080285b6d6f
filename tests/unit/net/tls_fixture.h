#pragma once

#include <stdlib.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "net/http_client.h"
#include "net/http_server.h"
#include "support/test_ca.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {

// For each connection by TLS cpprestsdk reads all CAs of the system, which takes 50 ms of a
// processor and has no part in these tests. Set before there are threads.
inline const bool kNoSystemCas = ::setenv("SSL_CERT_FILE", "/dev/null", 1) == 0;

// An HTTPS server called optcache-node, and clients of it.
class TlsFixture : public testing::Test {
 protected:
  void Listen(ClientCertificate client_certificate = ClientCertificate::kNone,
              HttpServerOptions options = {}) {
    server_tls = std::make_shared<TlsContext>(TlsRole::kServer, client_certificate);
    ASSERT_TRUE(server_tls->Replace(ca.Leaf({"optcache-node"})).ok());
    Serve(std::move(options));
  }
  // With server_tls as it is.
  void Serve(HttpServerOptions options = {}) {
    options.tls = server_tls;
    auto listening = ListenHttp(loop, "127.0.0.1:0", std::move(options),
                                [this](const HttpRequest& request, HttpResponder responder) {
                                  peers.push_back(request.peer);
                                  handler(request, std::move(responder));
                                });
    ASSERT_TRUE(listening.has_value()) << listening.error().message();
    server = std::move(*listening);
    base = "https://127.0.0.1:" + std::to_string(server->port());
  }
  // Of a client that trusts the CA and shows `own`, if anything.
  std::unique_ptr<HttpClient> Client(const TlsMaterial& own = {},
                                     std::string server_name = "optcache-node") {
    client_tls = std::make_shared<TlsContext>(TlsRole::kClient);
    const Status status =
        client_tls->Replace({.chain = own.chain, .key = own.key, .trust = ca.pem()});
    EXPECT_TRUE(status.ok()) << status.message();
    return MakeHttpClient(loop, {.tls = client_tls, .server_name = std::move(server_name)});
  }
  Result<HttpResponse> Fetch(HttpClient& client, HttpRequest request = {}) {
    if (request.url.empty()) request.url = base + "/";
    std::optional<Result<HttpResponse>> result;
    client.Send(std::move(request), kPatience,
                [&](Result<HttpResponse> response) { result = std::move(response); });
    RunUntil(loop, [&] { return result.has_value(); });
    return result.value_or(Error(Code::kInternal, "no callback"));
  }
  // How often that reason was counted.
  int Failures(std::string_view reason) const {
    double count = 0;
    server->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == "optcache_tls_handshake_failures_total" && labels.back().second == reason) {
            count = value;
          }
        });
    return static_cast<int>(count);
  }
  // Connections of the server.
  int Open() const {
    double count = 0;
    server->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels&, double value) {
          if (name == "optcache_http_open_connections") count = value;
        });
    return static_cast<int>(count);
  }

  EventLoop loop;
  TestCa ca;
  std::shared_ptr<TlsContext> server_tls;
  std::shared_ptr<TlsContext> client_tls;
  std::unique_ptr<HttpServer> server;
  std::string base;
  std::vector<PeerInfo> peers;
  HttpHandler handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, "hello"));
  };
};

}  // namespace optcache::net
