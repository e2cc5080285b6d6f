// TLS between the HTTP client and the HTTP server, over real sockets.

#include "support/growing_deadline.h"
#include "unit/net/tls_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr pki::Usages kServerOnly = {.server = true};
constexpr pki::Usages kClientOnly = {.client = true};
constexpr TestValidity kOver = {.begin = -7200, .end = -60};

class Https : public TlsFixture {};

TEST_F(Https, ARequestGoesThereAndBack) {
  Listen();
  handler = [](const HttpRequest& request, const HttpResponder& respond) {
    respond(HttpResponse::Text(201, request.method + " " + request.url + " " + request.body));
  };
  const auto client = Client();
  const auto response =
      Fetch(*client, {.method = "POST", .url = base + "/v1/x?y=z", .body = "body"});
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, "POST /v1/x?y=z body");
  ASSERT_EQ(peers.size(), 1U);
  EXPECT_TRUE(peers[0].dns_names.empty());
  EXPECT_TRUE(peers[0].address.starts_with("127.0.0.1:"));
}

TEST_F(Https, LargeBodiesGoBothWays) {
  Listen(ClientCertificate::kNone, {.max_body_bytes = 16_MiB});
  handler = [](const HttpRequest& request, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, request.body));
  };
  std::string body;
  for (int i = 0; i < 2'000'000; ++i)
    body += std::to_string(i % 1000);
  const auto client = Client();
  const auto response = Fetch(*client, {.method = "PUT", .url = base + "/", .body = body});
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_TRUE(response->body == body);
}

TEST_F(Https, TheServerLearnsTheNamesOfTheClient) {
  Listen(ClientCertificate::kRequired);
  const auto client = Client(ca.Leaf({"optcache-node", "optcache-node-7x2k"}));
  const auto response = Fetch(*client);
  ASSERT_TRUE(response.has_value()) << response.error().message();
  ASSERT_EQ(peers.size(), 1U);
  EXPECT_EQ(peers[0].dns_names, (std::vector<std::string>{"optcache-node", "optcache-node-7x2k"}));
}

TEST_F(Https, AConnectionServesNobodyWhoseCertificateHasExpired) {
  EXPECT_TRUE(HoldsForSomeDeadline(seconds(5), [&](Duration validity) {
    Listen(ClientCertificate::kRequired);
    peers.clear();
    const auto client =
        Client(ca.Leaf({"optcache-node"}, {.begin = -3600, .end = validity / seconds(1)}));
    if (!Fetch(*client).has_value()) return false;  // it has expired before it was shown
    EXPECT_EQ(peers.size(), 1U);
    RunUntil(loop, [&] { return peers.at(0).Expired(SystemClock().UnixSeconds()); });
    EXPECT_FALSE(Fetch(*client).has_value());
    EXPECT_EQ(peers.size(), 1U);
    return true;
  }));
}

TEST_F(Https, ACertificateThatIsRequestedMayBeMissing) {
  Listen(ClientCertificate::kRequested);
  const auto without = Client();
  ASSERT_TRUE(Fetch(*without).has_value());
  EXPECT_TRUE(peers.at(0).dns_names.empty());
  const auto with = Client(ca.Leaf({"optcache-node"}));
  ASSERT_TRUE(Fetch(*with).has_value());
  EXPECT_TRUE(peers.at(1).Is("optcache-node"));
}

TEST_F(Https, WhoShowsNoCertificateMaySendLess) {
  Listen(ClientCertificate::kRequested,
         {.max_body_bytes = 1_MiB, .max_body_bytes_unproven = 1_KiB});
  const HttpRequest request{.method = "POST", .url = base + "/", .body = std::string(2048, 'x')};
  const auto without = Client();
  const auto refused = Fetch(*without, request);
  EXPECT_TRUE(!refused.has_value() || refused->status == 413);
  EXPECT_TRUE(peers.empty());
  const auto with = Client(ca.Leaf({"optcache-node"}));
  const auto taken = Fetch(*with, request);
  ASSERT_TRUE(taken.has_value()) << taken.error().message();
  EXPECT_EQ(peers.size(), 1U);
}

// --- What the server refuses --------------------------------------------------------------------

TEST_F(Https, ACertificateThatIsRequiredMayNotBeMissing) {
  Listen(ClientCertificate::kRequired);
  const auto client = Client();
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kPermissionDenied) << response.error().message();
  EXPECT_EQ(Failures("no_certificate"), 1);
  EXPECT_TRUE(peers.empty());
}

TEST_F(Https, AClientOfAnotherAuthorityIsRefused) {
  Listen(ClientCertificate::kRequested);
  const auto client = Client(TestCa().Leaf({"optcache-node"}));
  EXPECT_FALSE(Fetch(*client).has_value());
  EXPECT_EQ(Failures("untrusted"), 1);
  EXPECT_TRUE(peers.empty());
}

TEST_F(Https, AClientWhoseTimeIsOverIsRefused) {
  Listen(ClientCertificate::kRequired);
  const auto client = Client(ca.Leaf({"optcache-node"}, kOver, kClientOnly));
  EXPECT_FALSE(Fetch(*client).has_value());
  EXPECT_EQ(Failures("untrusted"), 1);
}

TEST_F(Https, AServersCertificateDoesNotMakeAClient) {
  Listen(ClientCertificate::kRequired);
  const auto client = Client(ca.Leaf({"optcache-operator"}, {}, kServerOnly));
  EXPECT_FALSE(Fetch(*client).has_value());
  EXPECT_EQ(Failures("untrusted"), 1);
}

TEST_F(Https, WhoSpeaksPlainHttpIsToldSo) {
  Listen();
  const RawClient client(server->port());
  client.Send(AsBytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  RunUntil(loop, [&] { return Failures("not_tls") == 1; });
  ::shutdown(client.fd(), SHUT_WR);
  RunUntil(loop, [&] { return Open() == 0; });
  const auto answer = client.ReadAll();
  EXPECT_TRUE(AsText(answer).starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(AsText(answer).ends_with("this port speaks HTTPS\n"));
}

TEST_F(Https, WhoSpeaksSomethingElseIsClosed) {
  Listen();
  RawClient client(server->port());
  client.Send(AsBytes(std::string(64, '\x7f')));
  RunUntil(loop, [&] { return Failures("not_tls") + Failures("protocol") == 1; });
  client.Close();
  RunUntil(loop, [&] { return Open() == 0; });
}

TEST_F(Https, WhoSaysNothingIsClosedInTime) {
  Listen(ClientCertificate::kNone, {.handshake_deadline = milliseconds(20)});
  const RawClient silent(server->port());
  RunUntil(loop, [&] { return Failures("timeout") == 1 && Open() == 0; });
  EXPECT_TRUE(silent.ReadAll().empty());
}

TEST_F(Https, WhoStallsInTheMiddleIsClosedInTime) {
  Listen(ClientCertificate::kNone, {.handshake_deadline = milliseconds(20)});
  const RawClient stalled(server->port());
  stalled.Send(AsBytes("\x16\x03\x01"));  // A handshake begins ...
  RunUntil(loop, [&] { return Failures("timeout") == 1 && Open() == 0; });
}

TEST_F(Https, WhoGoesInTheMiddleIsCounted) {
  Listen();
  RawClient client(server->port());
  client.Send(AsBytes("\x16\x03\x01"));
  client.Close();
  RunUntil(loop, [&] { return Failures("gone") == 1 && Open() == 0; });
}

TEST_F(Https, WithoutACertificateNobodyIsServed) {
  server_tls = std::make_shared<TlsContext>(TlsRole::kServer);
  Serve();
  const auto client = Client();
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_EQ(Failures("not_ready"), 1);
  ASSERT_TRUE(server_tls->Replace(ca.Leaf({"optcache-node"})).ok());
  EXPECT_TRUE(Fetch(*client).has_value());
}

// --- What the client refuses --------------------------------------------------------------------

TEST_F(Https, AServerOfAnotherAuthorityIsNotTrusted) {
  server_tls = std::make_shared<TlsContext>(TlsRole::kServer);
  ASSERT_TRUE(server_tls->Replace(TestCa("other").Leaf({"optcache-node"})).ok());
  Serve();
  const auto client = Client();
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(response.error().message(), base +
                                            "/: the server's certificate is not to be trusted: "
                                            "unable to get local issuer certificate");
  RunUntil(loop, [&] { return Failures("rejected") == 1; });
}

TEST_F(Https, AServerWhoseTimeIsOverIsNotTrusted) {
  server_tls = std::make_shared<TlsContext>(TlsRole::kServer);
  ASSERT_TRUE(server_tls->Replace(ca.Leaf({"optcache-node"}, kOver, kServerOnly)).ok());
  Serve();
  const auto client = Client();
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());
  EXPECT_TRUE(response.error().message().ends_with("certificate has expired"))
      << response.error().message();
}

TEST_F(Https, AServerOfAnotherNameIsNotTrusted) {
  Listen();
  const auto client = Client({}, "optcache-operator");
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kPermissionDenied);
  EXPECT_TRUE(response.error().message().ends_with("hostname mismatch"))
      << response.error().message();
}

TEST_F(Https, WithoutAServerNameTheAddressMustBeCertified) {
  Listen();
  const auto client = Client({}, "");
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());
  EXPECT_TRUE(response.error().message().ends_with("IP address mismatch"))
      << response.error().message();
}

TEST_F(Https, AClientsCertificateDoesNotMakeAServer) {
  server_tls = std::make_shared<TlsContext>(TlsRole::kServer);
  ASSERT_TRUE(server_tls->Replace(ca.Leaf({"optcache-node"}, {}, kClientOnly)).ok());
  Serve();
  const auto client = Client();
  EXPECT_FALSE(Fetch(*client).has_value());
}

TEST_F(Https, AClientWithoutABundleTrustsNobody) {
  Listen();
  client_tls = std::make_shared<TlsContext>(TlsRole::kClient);
  const auto client = MakeHttpClient(loop, {.tls = client_tls, .server_name = "optcache-node"});
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
  EXPECT_EQ(response.error().message(), base + "/: the CA bundle has not been read yet");
}

TEST_F(Https, WithoutABundleTheSystemsCasAreTrusted) {
  Listen();
  const auto client = MakeHttpClient(loop, {.server_name = "optcache-node"});
  const auto response = Fetch(*client);
  ASSERT_FALSE(response.has_value());  // Ours is none of them.
  EXPECT_EQ(response.error().code(), Code::kPermissionDenied) << response.error().message();
}

TEST_F(Https, ThePlainClientOfAnHttpsPortGetsAnAnswer) {
  Listen();
  const auto client = MakeHttpClient(loop);
  const auto response =
      Fetch(*client, {.url = "http://127.0.0.1:" + std::to_string(server->port()) + "/"});
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_EQ(response->status, 400);
}

TEST_F(Https, AServerWithoutTlsIsUnavailableByHttps) {
  auto plain = ListenHttp(loop, "127.0.0.1:0", {}, handler);
  ASSERT_TRUE(plain.has_value());
  const auto client = Client();
  const auto response =
      Fetch(*client, {.url = "https://127.0.0.1:" + std::to_string((*plain)->port()) + "/"});
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), Code::kUnavailable) << response.error().message();
}

// --- Waiting ------------------------------------------------------------------------------------

TEST_F(Https, AClientThatGoesWhileItWaitsIsNoticed) {
  Listen();
  std::optional<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting = respond; };
  const auto client = Client();
  auto stream = client->Stream({.url = base + "/"}, {}, {});
  RunUntil(loop, [&] { return waiting.has_value(); });
  EXPECT_FALSE(waiting->abandoned());
  stream.reset();
  RunUntil(loop, [&] { return waiting->abandoned(); });
}

// --- Rotation -----------------------------------------------------------------------------------

TEST_F(Https, NewConnectionsSeeTheNewCertificateAndOldOnesGoOn) {
  Listen();
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest& request, const HttpResponder& respond) {
    if (request.url == "/wait") return waiting.push_back(respond);
    respond(HttpResponse::Text(200, "hello"));
  };
  const auto old_client = Client();
  std::optional<Result<HttpResponse>> old_answer;
  old_client->Send({.url = base + "/wait"}, kPatience,
                   [&](Result<HttpResponse> response) { old_answer = std::move(response); });
  RunUntil(loop, [&] { return waiting.size() == 1; });

  const TestCa next("next");
  ASSERT_TRUE(server_tls->Replace(next.Leaf({"optcache-node"})).ok());
  const auto new_client = Client();
  EXPECT_FALSE(Fetch(*new_client).has_value());
  // The client's own material changes, too: the same client makes new connections with it.
  ASSERT_TRUE(client_tls->Replace({.trust = ca.pem() + next.pem()}).ok());
  EXPECT_TRUE(Fetch(*new_client).has_value());

  waiting[0](HttpResponse::Text(200, "late"));
  RunUntil(loop, [&] { return old_answer.has_value(); });
  ASSERT_TRUE(old_answer->has_value());
  EXPECT_EQ((*old_answer)->body, "late");
}

TEST_F(Https, RotationUnderLoadLosesNothing) {
  Listen(ClientCertificate::kRequired);
  const auto client = Client(ca.Leaf({"optcache-node"}));
  int sent = 0;
  int good = 0;
  std::vector<std::string> bad;
  std::function<void()> next = [&] {
    if (sent >= 120) return;
    ++sent;
    // Both sides get new certificates again and again, the CA stays.
    TlsContext& renewed = sent % 20 == 0 ? *server_tls : *client_tls;
    const bool renew = sent % 10 == 0;
    EXPECT_TRUE(!renew || renewed.Replace(ca.Leaf({"optcache-node"})).ok());
    client->Send({.url = base + "/"}, kPatience, [&](const Result<HttpResponse>& response) {
      if (response && response->status == 200) {
        ++good;
      } else {
        bad.push_back(response ? "status" : response.error().message());
      }
      next();
    });
  };
  for (int i = 0; i < 4; ++i)
    next();
  RunUntil(loop, [&] { return good + static_cast<int>(bad.size()) == 120; });
  EXPECT_EQ(good, 120) << (bad.empty() ? "" : bad[0]);
}

TEST_F(Https, BadMaterialLeavesTheOldInUse) {
  Listen();
  TlsMaterial mixed = ca.Leaf({"optcache-node"});
  mixed.key = ca.Leaf({"optcache-node"}).key;
  const auto before = server_tls->material();
  const Status status = server_tls->Replace(mixed);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("own key: it is not the key of the certificate"))
      << status.message();
  EXPECT_EQ(server_tls->material(), before);
  const auto client = Client();
  EXPECT_TRUE(Fetch(*client).has_value());
}

TEST_F(Https, TheExpiryIsThatOfTheOwnCertificate) {
  const TlsContext unready(TlsRole::kServer);
  EXPECT_EQ(unready.expires_at(), 0);
  Listen();
  const auto leaf = pki::Inspect(server_tls->material()->chain);
  ASSERT_TRUE(leaf.has_value());
  EXPECT_EQ(server_tls->expires_at(), static_cast<double>(leaf->validity.not_after));
}

// --- Errors in masses ---------------------------------------------------------------------------

// Each failed request leaves a task behind whose error nobody may miss: else the process ends.
TEST_F(Https, ManyFailuresAtOnceAreAllTold) {
  Listen(ClientCertificate::kRequired);
  handler = [&](const HttpRequest&, const HttpResponder&) {};
  const auto good = Client(ca.Leaf({"optcache-node"}));
  const auto refused = Client();
  const auto mistrustful = Client({}, "other-name");
  int told = 0;
  const auto count = [&](const Result<HttpResponse>& response) {
    ++told;
    EXPECT_TRUE(!response.has_value() || response->status >= 400);
  };
  for (int i = 0; i < 15; ++i) {
    good->Send({.url = base + "/"}, milliseconds(i), count);
    refused->Send({.url = base + "/"}, kPatience, count);
    mistrustful->Send({.url = base + "/"}, kPatience, count);
    good->Send({.url = "https://127.0.0.1:1/"}, kPatience, count);
  }
  RunUntil(loop, [&] { return told == 60; });
}

// --- Stop ---------------------------------------------------------------------------------------

TEST_F(Https, AStoppingServerEndsWhatIsAskedAndClosesTheRest) {
  Listen();
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting.push_back(respond); };
  const auto client = Client();
  std::optional<Result<HttpResponse>> answer;
  client->Send({.url = base + "/"}, kPatience,
               [&](Result<HttpResponse> response) { answer = std::move(response); });
  const RawClient idle(server->port());
  RunUntil(loop, [&] { return waiting.size() == 1 && Open() == 2; });
  bool stopped = false;
  server->Stop(kPatience, [&] { stopped = true; });
  EXPECT_FALSE(stopped);
  RunUntil(loop, [&] { return Open() == 1; });
  waiting[0](HttpResponse::Text(200, "the last"));
  RunUntil(loop, [&] { return answer.has_value() && stopped; });
  ASSERT_TRUE(answer->has_value()) << answer->error().message();
  EXPECT_EQ((*answer)->body, "the last");
  EXPECT_EQ(FindHeader((*answer)->headers, "Connection"), "close");
}

TEST_F(Https, AfterTheGraceEverythingIsClosed) {
  Listen();
  std::vector<HttpResponder> waiting;
  handler = [&](const HttpRequest&, const HttpResponder& respond) { waiting.push_back(respond); };
  const auto client = Client();
  std::optional<Result<HttpResponse>> answer;
  client->Send({.url = base + "/"}, kPatience,
               [&](Result<HttpResponse> response) { answer = std::move(response); });
  RunUntil(loop, [&] { return waiting.size() == 1; });
  bool stopped = false;
  server->Stop(milliseconds(10), [&] { stopped = true; });
  RunUntil(loop, [&] { return answer.has_value() && stopped; });
  EXPECT_FALSE(answer->has_value());
}

}  // namespace
}  // namespace optcache::net
