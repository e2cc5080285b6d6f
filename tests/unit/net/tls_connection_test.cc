// Wire connections over TLS: who gets through, who does not, and what is counted.

#include <gtest/gtest.h>

#include "support/growing_deadline.h"
#include "unit/net/interposer.h"
#include "unit/net/loop_fixture.h"
#include "unit/net/transports.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The value of a counter with that last label.
double CounterOf(const auto& counted, std::string_view wanted, std::string_view last_label) {
  double found = -1;
  counted.VisitCounters(
      [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
        if (name == wanted && labels.back().second == last_label) found = value;
      });
  return found;
}

class TlsConnectionTest : public testing::Test {
 protected:
  void Start(ServerOptions options = On(Transport::kTls, ServerOptions{.name = "node-1"})) {
    auto listening = Listen(loop, "127.0.0.1:0", std::move(options), node);
    ASSERT_TRUE(listening.has_value()) << listening.error().message();
    server = std::move(*listening);
  }
  std::shared_ptr<Connection> DialWith(std::shared_ptr<const TlsContext> tls,
                                       wire::Role role = wire::Role::kSidecar,
                                       std::string server_name = "optcache-node") {
    DialOptions options = OptionsOf(std::move(tls), role);
    options.server_name = std::move(server_name);
    return Dial(loop, server->address(), std::move(options), peer);
  }
  DialOptions OptionsOf(std::shared_ptr<const TlsContext> tls,
                        wire::Role role = wire::Role::kSidecar) const {
    DialOptions options = Patient({.role = role, .name = "peer"});
    options.tls = std::move(tls);
    options.server_name = "optcache-node";
    options.tls_failures = failures;
    return options;
  }
  // Without the server and the connections that there are.
  void BeginAgain() {
    connections.clear();
    server.reset();
    node = std::make_shared<Recorder>();
    peer = std::make_shared<Recorder>();
  }
  // Of the dialing side.
  Status Failure() {
    RunUntil(loop, [&] { return peer->closed.size() == 1; });
    EXPECT_EQ(peer->opened, 0);
    return peer->closed.at(0);
  }
  double Refused(std::string_view reason) const {
    return CounterOf(*server, "optcache_net_refused_connections_total", reason);
  }
  double ServerFailures(std::string_view reason) const {
    return CounterOf(*server, "optcache_tls_handshake_failures_total", reason);
  }
  std::uint64_t OwnFailures(HandshakeFailure failure) const {
    return failures->counts.at(static_cast<std::size_t>(failure));
  }

  const TestCa& ca = CommonCa();
  EventLoop loop;
  std::shared_ptr<Recorder> node = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> peer = std::make_shared<Recorder>();
  std::shared_ptr<HandshakeFailures> failures = std::make_shared<HandshakeFailures>();
  std::unique_ptr<Server> server;
  std::vector<std::shared_ptr<Connection>> connections;
};

TEST_F(TlsConnectionTest, BothSidesKnowWhatTheOtherProved) {
  Start();
  const auto connection = DialWith(ca.Client({"optcache-node", "node-2"}), wire::Role::kNode);
  RunUntil(loop, [&] { return node->opened == 1 && peer->opened == 1; });
  const PeerInfo& dialing = node->open.begin()->second->peer();
  EXPECT_EQ(dialing.dns_names, (std::vector<std::string>{"optcache-node", "node-2"}));
  EXPECT_TRUE(dialing.address.starts_with("127.0.0.1:"));
  EXPECT_TRUE(connection->peer().Is("node-1"));
}

TEST_F(TlsConnectionTest, ASidecarNeedsNoCertificate) {
  Start();
  const auto connection = DialWith(ca.Client());
  RunUntil(loop, [&] { return node->opened == 1; });
  EXPECT_TRUE(node->open.begin()->second->peer().dns_names.empty());
}

TEST_F(TlsConnectionTest, ANodeWithoutCertificateIsRefused) {
  Start();
  const auto connection = DialWith(ca.Client(), wire::Role::kNode);
  const Status status = Failure();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_EQ(status.message(),
            "the peer refused: a node shows a certificate for 'optcache-node'; this peer's is "
            "missing");
  EXPECT_EQ(Refused("certificate"), 1);
  EXPECT_EQ(node->opened, 0);
}

TEST_F(TlsConnectionTest, ANodeWithSomeOtherCertificateIsRefused) {
  Start();
  const auto connection = DialWith(ca.Client({"optcache-operator"}), wire::Role::kNode);
  EXPECT_EQ(Failure().message(),
            "the peer refused: a node shows a certificate for 'optcache-node'; this peer's is for "
            "'optcache-operator'");
  EXPECT_EQ(Refused("certificate"), 1);
}

TEST_F(TlsConnectionTest, ACertificateOfAnotherCaIsNotTaken) {
  const TestCa other("other");
  Start();
  TlsMaterial material = other.Leaf({"optcache-node"});
  material.trust = ca.pem();
  const auto connection =
      DialWith(TestCa::Context(TlsRole::kClient, std::move(material)), wire::Role::kNode);
  const Status status = Failure();
  EXPECT_NE(status.code(), Code::kOk);
  EXPECT_EQ(ServerFailures("untrusted"), 1);
  EXPECT_EQ(node->opened, 0);
}

TEST_F(TlsConnectionTest, AServerOfAnotherCaIsNotSpokenTo) {
  const TestCa other("other");
  Start();
  const auto connection = DialWith(other.Client());
  EXPECT_EQ(Failure().code(), Code::kPermissionDenied);
  EXPECT_EQ(OwnFailures(HandshakeFailure::kUntrusted), 1U);
  RunUntil(loop, [&] { return ServerFailures("rejected") == 1; });
}

TEST_F(TlsConnectionTest, AServerWhoseCertificateExpiredIsNotSpokenTo) {
  Start({.tls = TestCa::Context(TlsRole::kServer,
                                ca.Leaf({"optcache-node"}, {.begin = -7200, .end = -3600}))});
  const auto connection = DialWith(ca.Client());
  const Status status = Failure();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_NE(status.message().find("certificate has expired"), std::string::npos)
      << status.message();
}

// Nobody goes on by what has expired: neither whom it let in nor whom it dialed.
TEST_F(TlsConnectionTest, AConnectionEndsWithTheCertificateOfItsPeer) {
  EXPECT_TRUE(HoldsForSomeDeadline(seconds(5), [&](Duration validity) {
    BeginAgain();
    ServerOptions lasting = On(Transport::kTls, ServerOptions{.name = "node-1"});
    lasting.limits.stall_deadline = milliseconds(200);
    Start(std::move(lasting));
    const TestValidity short_lived{.begin = -3600, .end = validity / seconds(1)};
    connections.push_back(DialWith(
        TestCa::Context(TlsRole::kClient, ca.Leaf({"optcache-node", "node-2"}, short_lived)),
        wire::Role::kNode));
    const auto unproven = DialWith(ca.Client());
    RunUntil(loop, [&] { return node->opened == 2 || !peer->closed.empty(); });
    if (node->opened < 2) return false;  // it has expired before it was shown
    RunUntil(loop, [&] { return !node->closed.empty(); });
    EXPECT_EQ(node->closed.at(0).code(), Code::kUnavailable);
    EXPECT_NE(node->closed.at(0).message().find("has expired"), std::string::npos);
    EXPECT_FALSE(unproven->closed()) << "a sidecar has shown none";
    return true;
  }));
}

TEST_F(TlsConnectionTest, AConnectionEndsWithTheCertificateOfItsServer) {
  EXPECT_TRUE(HoldsForSomeDeadline(seconds(5), [&](Duration validity) {
    BeginAgain();
    ServerOptions options{.name = "node-1"};
    const TestValidity short_lived{.begin = -3600, .end = validity / seconds(1)};
    options.tls = TestCa::Context(TlsRole::kServer, ca.Leaf({"optcache-node"}, short_lived));
    options.bulk = true;
    Start(std::move(options));
    for (const bool bulk : {false, true}) {
      DialOptions dial = On(bulk ? Transport::kBulk : Transport::kTls, Patient({.name = "peer"}));
      dial.limits.stall_deadline = milliseconds(200);
      connections.push_back(Dial(loop, server->address(), std::move(dial), peer));
    }
    RunUntil(loop, [&] { return peer->opened == 2 || !peer->closed.empty(); });
    if (peer->opened < 2) return false;  // it has expired before it was shown
    RunUntil(loop, [&] { return peer->closed.size() == 2; });
    for (const Status& status : peer->closed)
      EXPECT_NE(status.message().find("has expired"), std::string::npos) << status.message();
    return true;
  }));
}

TEST_F(TlsConnectionTest, AServerWithAnotherNameIsNotSpokenTo) {
  Start();
  const auto connection =
      DialWith(ca.Client(), wire::Role::kSidecar, "optcache-operator.optcache.svc");
  EXPECT_EQ(Failure().code(), Code::kPermissionDenied);
  EXPECT_EQ(OwnFailures(HandshakeFailure::kWrongName), 1U);
}

TEST_F(TlsConnectionTest, APlainClientIsClosedAndCounted) {
  Start();
  const RawClient client(server->port());
  client.Send(wire::Hello{});
  RunUntil(loop, [&] { return ServerFailures("not_tls") == 1; });
  RunUntil(loop, [&] { return server->open_connections() == 0; });
  EXPECT_EQ(node->opened, 0);
}

TEST_F(TlsConnectionTest, APlainServerIsNotSpokenTo) {
  Start({.name = "plain"});
  const auto connection = DialWith(ca.Client());
  EXPECT_EQ(Failure().code(), Code::kUnavailable);
  EXPECT_EQ(OwnFailures(HandshakeFailure::kNotTls), 1U);
}

TEST_F(TlsConnectionTest, AHandshakeThatStallsIsClosedAndCounted) {
  ServerOptions options = On(Transport::kTls, ServerOptions{.hello_deadline = milliseconds(20)});
  Start(std::move(options));
  const RawClient silent(server->port());
  const RawClient half(server->port());
  half.Send(AsBytes(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)));
  RunUntil(loop, [&] { return ServerFailures("timeout") == 2; });
  RunUntil(loop, [&] { return server->open_connections() == 0; });
}

TEST_F(TlsConnectionTest, OneSourcesHandshakesWaitAndAnothersDoNot) {
  ServerOptions options = On(Transport::kTls, ServerOptions{.name = "node-1"});
  options.hello_deadline = std::chrono::minutes(5);
  options.handshakes.per_second_of_source = 1e-4;  // the next one comes in hours
  options.handshakes.burst_of_source = 2;
  Start(std::move(options));
  // Two that shake no hands take what their source may have.
  const std::vector<std::uint16_t> ports(2, server->port());
  const std::vector<RawClient> many(ports.begin(), ports.end());
  RunUntil(loop, [&] { return server->open_connections() == 2; });
  peer->on_open = [](Connection& connection) { connection.Close(OkStatus()); };
  const auto waits = DialWith(ca.Client());
  RunUntil(loop, [&] {
    return CounterOf(*server, "optcache_tls_delayed_handshakes_total", "wire") == 1;
  });
  EXPECT_EQ(peer->opened, 0);
  const Interposer path(loop, server->port(), "127.0.0.2");
  const auto other = Dial(loop, path.address(), OptionsOf(ca.Client()), peer);
  RunUntil(loop, [&] { return peer->opened == 1; });
  waits->Close(OkStatus());
  RunUntil(loop, [&] { return peer->closed.size() == 2; });
}

TEST_F(TlsConnectionTest, WhoseTurnDoesNotComeIsClosedAndCounted) {
  ServerOptions options = On(Transport::kTls, ServerOptions{.hello_deadline = milliseconds(20)});
  options.handshakes.per_second_of_source = 1e-4;
  options.handshakes.burst_of_source = 1;
  Start(std::move(options));
  const std::vector<std::uint16_t> ports(3, server->port());
  const std::vector<RawClient> many(ports.begin(), ports.end());
  RunUntil(loop, [&] { return ServerFailures("timeout") == 3; });
  RunUntil(loop, [&] { return server->open_connections() == 0; });
}

TEST_F(TlsConnectionTest, WhoGoesBeforeItsTurnIsNoConnectionAnyMore) {
  ServerOptions options = On(Transport::kTls, ServerOptions{.name = "node-1"});
  options.hello_deadline = std::chrono::minutes(5);
  options.handshakes.per_second_of_source = 1e-4;
  options.handshakes.burst_of_source = 1;
  options.max_silent_of_source = 2;
  Start(std::move(options));
  const std::vector<std::uint16_t> ports(5, server->port());
  const std::vector<RawClient> many(ports.begin(), ports.end());
  RunUntil(loop, [&] { return Refused("limit") == 3 && server->open_connections() == 2; });
  server.reset();
}

TEST_F(TlsConnectionTest, AServerWithoutCertificateYetTakesNobody) {
  Start({.tls = std::make_shared<TlsContext>(TlsRole::kServer, ClientCertificate::kRequested)});
  const auto connection = DialWith(ca.Client());
  EXPECT_EQ(Failure().code(), Code::kUnavailable);
  EXPECT_EQ(ServerFailures("not_ready"), 1);
}

TEST_F(TlsConnectionTest, AClientThatTrustsNobodyYetTriesLater) {
  Start();
  const auto connection = DialWith(std::make_shared<TlsContext>(TlsRole::kClient));
  EXPECT_EQ(Failure().message(), "this side has no certificate yet; try again later");
  EXPECT_EQ(OwnFailures(HandshakeFailure::kNotReady), 1U);
}

TEST_F(TlsConnectionTest, ATokenGoesByTlsAndIsAskedForAtEachDial) {
  std::vector<std::string> seen;
  ServerOptions server_options = On(Transport::kTls, ServerOptions());
  server_options.authorize = Immediately([&](const wire::Hello& hello, const PeerInfo&) {
    seen.push_back(hello.token);
    return OkStatus();
  });
  Start(std::move(server_options));
  DialOptions options = On(Transport::kTls, Patient());
  int version = 0;
  options.token = [&]() -> Result<std::string> { return "token-" + std::to_string(++version); };
  const auto first = Dial(loop, server->address(), options, peer);
  RunUntil(loop, [&] { return peer->opened == 1; });
  const auto second = Dial(loop, server->address(), options, peer);
  RunUntil(loop, [&] { return peer->opened == 2; });
  EXPECT_EQ(seen, (std::vector<std::string>{"token-1", "token-2"}));
}

TEST_F(TlsConnectionTest, ATokenThatCannotBeReadEndsTheAttempt) {
  Start();
  DialOptions options = On(Transport::kTls, Patient());
  options.token = []() -> Result<std::string> { return Error(Code::kNotFound, "no such file"); };
  const auto connection = Dial(loop, server->address(), options, peer);
  EXPECT_EQ(Failure().code(), Code::kNotFound);
}

TEST_F(TlsConnectionTest, ATokenIsNotSentInPlaintext) {
  Start({.name = "plain"});
  DialOptions options = Patient();
  options.token = []() -> Result<std::string> { return "secret"; };
  const auto connection = Dial(loop, server->address(), options, peer);
  EXPECT_EQ(Failure().message(), "a token is not sent in plaintext; dial with TLS");
}

TEST_F(TlsConnectionTest, ATokenThatIsTooLongIsNotCut) {
  Start();
  DialOptions options = On(Transport::kTls, Patient());
  options.token = []() -> Result<std::string> { return std::string(5000, 'x'); };
  const auto connection = Dial(loop, server->address(), options, peer);
  EXPECT_EQ(Failure().message(), "the token has 5000 bytes; the limit is 4096");
}

// Samples keep coming while all certificates are exchanged for those of a new CA, as the operator
// does it: first both are trusted, then the leaves change, then the old trust goes.
TEST_F(TlsConnectionTest, CertificatesChangeWhileSamplesFlow) {
  const TestCa old_ca("old");
  const TestCa new_ca("new");
  const auto server_tls = old_ca.Server({"optcache-node"});
  const auto client_tls = old_ca.Client();
  node->on_message = [&](Connection& connection, std::uint32_t id, const wire::Message&) {
    SendSample(connection, id, Sample(50'000, id), 0);
  };
  Start({.tls = server_tls});
  int answered = 0;
  peer->on_open = [](Connection& connection) { connection.Send(1, wire::Get{}); };
  peer->on_payload = [&](Connection& connection, std::uint32_t id) {
    ++answered;
    connection.Send(id + 1, wire::Get{});
  };
  const auto running = DialWith(client_tls);
  const auto more = [&] {
    const int before = answered;
    const int opened = peer->opened;
    const auto fresh = DialWith(client_tls);
    RunUntil(loop, [&] { return answered > before + 20 && peer->opened == opened + 1; });
  };
  RunUntil(loop, [&] { return answered > 20; });
  const std::string both = old_ca.pem() + new_ca.pem();
  ASSERT_TRUE(client_tls->Replace({.chain = {}, .key = {}, .trust = both}).ok());
  more();
  TlsMaterial fresh = new_ca.Leaf({"optcache-node"});
  fresh.trust = both;
  ASSERT_TRUE(server_tls->Replace(fresh).ok());
  more();
  ASSERT_TRUE(client_tls->Replace({.chain = {}, .key = {}, .trust = new_ca.pem()}).ok());
  more();
  EXPECT_TRUE(peer->closed.empty());
  EXPECT_TRUE(node->closed.empty());
  for (const auto& payload : peer->payloads)
    EXPECT_TRUE(payload.status.ok());
}

}  // namespace
}  // namespace optcache::net
