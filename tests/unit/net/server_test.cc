#include "net/server.h"

#include <sys/stat.h>

#include <cstring>

#include <gtest/gtest.h>

#include "base/log.h"
#include "unit/net/loop_fixture.h"
#include "wire/codec.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

class ServerTest : public testing::Test {
 protected:
  void Start(ServerOptions options = {.name = "node-1"}) {
    auto listening = Listen(loop, "127.0.0.1:0", std::move(options), handler);
    ASSERT_TRUE(listening.has_value()) << listening.error().ToString();
    server = std::move(*listening);
  }
  void RunUntilClosed() {
    RunUntil(loop, [&] { return server->open_connections() == 0; });
  }
  std::uint64_t ClosedWith(Code wanted) const {
    double count = 0;
    server->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == "optcache_net_closed_connections_total" &&
              labels.back().second == CodeName(wanted)) {
            count = value;
          }
        });
    return static_cast<std::uint64_t>(count);
  }
  // The Refusal that the client finds at the end of what the server said.
  static wire::Refusal LastWords(const RawClient& client) {
    const auto bytes = client.ReadAll();
    ByteSpan rest = bytes;
    wire::Refusal refusal{.code = Code::kOk, .message = "none"};
    while (!rest.empty()) {
      const auto decoded = wire::DecodeFrame(rest);
      if (!decoded || !std::holds_alternative<wire::Frame>(*decoded)) break;
      const auto& frame = std::get<wire::Frame>(*decoded);
      if (const auto* found = std::get_if<wire::Refusal>(&frame.message)) refusal = *found;
      rest = rest.subspan(frame.size);
    }
    return refusal;
  }

  EventLoop loop;
  std::shared_ptr<Recorder> handler = std::make_shared<Recorder>();
  std::unique_ptr<Server> server;
};

TEST_F(ServerTest, TellsTheHandlerWhoConnected) {
  Start();
  const RawClient client(server->port());
  client.Send(wire::Hello{.role = wire::Role::kNode, .name = "node-2", .member = 2});
  RunUntil(loop, [&] { return handler->opened == 1; });
  const Connection& connection = *handler->open.begin()->second;
  EXPECT_EQ(connection.peer_name(), "node-2");
  EXPECT_EQ(connection.peer_role(), wire::Role::kNode);
  EXPECT_EQ(connection.peer_member(), 2U);
  EXPECT_TRUE(connection.address().starts_with("127.0.0.1:"));
}

TEST_F(ServerTest, AHelloInSingleBytesIsAHello) {
  Start();
  const RawClient client(server->port());
  std::vector<std::byte> frame;
  EXPECT_TRUE(wire::AppendFrame(0, wire::Hello{.name = "slow"}, 0, frame).ok());
  for (const std::byte& byte : frame)
    client.Send(ByteSpan(&byte, 1));
  RunUntil(loop, [&] { return handler->opened == 1; });
}

TEST_F(ServerTest, ClosesAPeerThatSaysNothing) {
  Start({.hello_deadline = milliseconds(20)});
  const RawClient client(server->port());
  RunUntil(loop, [&] { return ClosedWith(Code::kDeadlineExceeded) == 1; });
  EXPECT_EQ(LastWords(client).code, Code::kDeadlineExceeded);
  EXPECT_EQ(handler->opened, 0);
}

TEST_F(ServerTest, ClosesAPeerThatSaysHalfAHello) {
  Start({.hello_deadline = milliseconds(20)});
  const RawClient client(server->port());
  std::vector<std::byte> frame;
  EXPECT_TRUE(wire::AppendFrame(0, wire::Hello{}, 0, frame).ok());
  client.Send(ByteSpan(frame).first(20));
  RunUntil(loop, [&] { return ClosedWith(Code::kDeadlineExceeded) == 1; });
}

TEST_F(ServerTest, ClosesAPeerThatStopsInAPayload) {
  Start({.limits = {.stall_deadline = milliseconds(20)}});
  const RawClient client(server->port());
  client.Send(wire::Hello{.role = wire::Role::kSidecar});
  std::vector<std::byte> frame;
  EXPECT_TRUE(wire::AppendFrame(0, wire::Put{}, 1'000'000, frame).ok());
  frame.resize(frame.size() + 1000);
  client.Send(frame);
  RunUntil(loop, [&] { return ClosedWith(Code::kDeadlineExceeded) == 1; });
  EXPECT_EQ(handler->payloads_started, 1);
  EXPECT_TRUE(handler->payloads.empty());
  ASSERT_EQ(handler->closed.size(), 1U);
  EXPECT_EQ(handler->closed[0].code(), Code::kDeadlineExceeded);
}

TEST_F(ServerTest, ClosesASilentPeerIfToldTo) {
  Start({.limits = {.idle_deadline = milliseconds(20)}});
  const RawClient client(server->port());
  client.Send(wire::Hello{});
  RunUntil(loop, [&] { return handler->closed.size() == 1; });
  EXPECT_EQ(handler->closed[0].code(), Code::kDeadlineExceeded);
}

TEST_F(ServerTest, ClosesAtGarbage) {
  Start();
  const RawClient client(server->port());
  client.Send(AsBytes("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  RunUntil(loop, [&] { return ClosedWith(Code::kInvalidArgument) == 1; });
  EXPECT_EQ(LastWords(client).message, "these bytes are not the optcache protocol");
  EXPECT_EQ(handler->opened, 0);
}

TEST_F(ServerTest, ClosesAtLengthsOverTheLimit) {
  Start({.limits = {.max_payload_bytes = 1000}});
  const RawClient client(server->port());
  client.Send(wire::Hello{.role = wire::Role::kSidecar});
  std::vector<std::byte> frame;
  EXPECT_TRUE(wire::AppendFrame(0, wire::Put{}, 1001, frame).ok());
  client.Send(frame);
  RunUntil(loop, [&] { return ClosedWith(Code::kInvalidArgument) == 1; });
  EXPECT_EQ(LastWords(client).message, "a payload of 1001 bytes is over the limit of 1000");
}

// Before it is known who asks, a length must cost next to nothing.
TEST_F(ServerTest, ClosesAtAHelloThatIsNone) {
  Start();
  const RawClient client(server->port());
  std::vector<std::byte> frame;
  EXPECT_TRUE(wire::AppendFrame(0, wire::Hello{}, 0, frame).ok());
  const std::uint32_t length = wire::kMaxHelloBodyBytes + 1;
  std::memcpy(frame.data() + 12, &length, sizeof(length));
  client.Send(ByteSpan(frame).first(wire::kHeaderBytes));
  RunUntil(loop, [&] { return ClosedWith(Code::kInvalidArgument) == 1; });
  EXPECT_EQ(LastWords(client).message, "a body of 16385 bytes is over the limit of 16384");
}

TEST_F(ServerTest, AfterHelloBodiesMayBeLong) {
  Start();
  const RawClient client(server->port());
  client.Send(wire::Hello{.role = wire::Role::kNode});
  client.Send(wire::Announce{.ids = std::vector<SampleId>(wire::kMaxItems)});
  RunUntil(loop, [&] { return handler->messages.size() == 1; });
}

TEST_F(ServerTest, WhoOnlyConnectsKeepsNobodyOut) {
  Start({.hello_deadline = std::chrono::minutes(5), .max_connections = 3, .max_silent = 2});
  std::vector<RawClient> silent;
  for (int i = 0; i < 4; ++i)
    silent.emplace_back(server->port());
  const RawClient good(server->port());
  good.Send(wire::Hello{.name = "good"});
  RunUntil(loop, [&] { return handler->opened == 1; });
  RunUntil(loop, [&] { return server->open_connections() <= 3; });
  EXPECT_EQ(LastWords(silent.front()).code, Code::kResourceExhausted);
}

// --- Sources

constexpr const char* kGoodSource = "127.0.0.2";
constexpr const char* kLateSource = "127.0.0.3";

// Four places, of which a source takes all that it can get.
class FourPlaces : public ServerTest {
 protected:
  void ExpectPlacesForOthers() {
    const RawClient good(server->port(), kGoodSource);
    RunUntil(loop, [&] { return server->open_connections() == 1; });
    std::vector<RawClient> silent;
    for (int i = 0; i < 12; ++i)
      silent.emplace_back(server->port());
    RunUntil(loop, [&] { return ClosedWith(Code::kResourceExhausted) == 9; });
    const RawClient late(server->port(), kLateSource);
    RunUntil(loop, [&] { return ClosedWith(Code::kResourceExhausted) == 10; });
    late.Send(wire::Hello{.name = "late"});
    RunUntil(loop, [&] { return handler->opened == 1; });
    EXPECT_EQ(handler->open.begin()->second->peer_name(), "late");
    good.Send(wire::Hello{.name = "good"});
    RunUntil(loop, [&] { return handler->opened == 2; });
  }
};

TEST_F(FourPlaces, ASourceThatOpensManyTakesNoneFromAnother) {
  Start({.hello_deadline = std::chrono::minutes(5), .max_silent = 4, .max_silent_of_source = 100});
  ExpectPlacesForOthers();
}

TEST_F(FourPlaces, ASourceThatOpensManyTakesNoneInAFullServer) {
  Start({.hello_deadline = std::chrono::minutes(5), .max_connections = 4});
  ExpectPlacesForOthers();
}

TEST_F(ServerTest, ASourceHasALimitOfSilentConnections) {
  Start({.hello_deadline = std::chrono::minutes(5), .max_silent_of_source = 2});
  const RawClient good(server->port(), kGoodSource);
  std::vector<RawClient> silent;
  for (int i = 0; i < 5; ++i)
    silent.emplace_back(server->port());
  RunUntil(loop, [&] { return ClosedWith(Code::kResourceExhausted) == 3; });
  EXPECT_EQ(server->open_connections(), 3U);
  EXPECT_EQ(LastWords(silent.front()).code, Code::kResourceExhausted);
  silent.back().Send(wire::Hello{.name = "of them"});
  good.Send(wire::Hello{.name = "good"});
  RunUntil(loop, [&] { return handler->opened == 2; });
}

TEST_F(ServerTest, SaysWhichSourceHasTooManyConnections) {
  SetUpLog("net_test", LogLevel::kInfo, LogFormat::kText);
  Start({.hello_deadline = std::chrono::minutes(5), .max_silent_of_source = 2});
  testing::internal::CaptureStderr();
  std::vector<RawClient> silent;
  for (int i = 0; i < 5; ++i)
    silent.emplace_back(server->port());
  RunUntil(loop, [&] { return ClosedWith(Code::kResourceExhausted) == 3; });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("source=127.0.0.1 silent_connections_of_it=2"), std::string::npos) << log;
}

TEST_F(ServerTest, WhoHasSaidHelloIsNotSilentAnyMore) {
  Start({.hello_deadline = std::chrono::minutes(5), .max_silent_of_source = 1});
  std::vector<RawClient> clients;
  for (int i = 1; i <= 5; ++i) {
    clients.emplace_back(server->port());
    clients.back().Send(wire::Hello{});
    RunUntil(loop, [&] { return handler->opened == i; });
  }
  EXPECT_EQ(server->open_connections(), 5U);
}

TEST_F(ServerTest, ASourceWhoseTokensAreBeingCheckedLeavesRoomForAnothers) {
  std::vector<std::function<void(Status)>> decisions;
  Start(
      {.hello_deadline = std::chrono::minutes(5),
       .authorize = [&](const wire::Hello&, const PeerInfo&,
                        const std::function<void(Status)>& decide) { decisions.push_back(decide); },
       .authorize_deadline = std::chrono::minutes(5),
       .max_undecided_of_source = 2});
  std::vector<RawClient> many;
  for (int i = 0; i < 3; ++i) {
    many.emplace_back(server->port());
    many.back().Send(wire::Hello{});
  }
  RunUntil(loop, [&] { return ClosedWith(Code::kResourceExhausted) == 1; });
  const RawClient good(server->port(), kGoodSource);
  good.Send(wire::Hello{.name = "good"});
  RunUntil(loop, [&] { return decisions.size() == 3; });
  for (const auto& decide : decisions)
    decide(OkStatus());
  RunUntil(loop, [&] { return handler->opened == 3; });
}

TEST_F(ServerTest, ClosesAtAMessageBeforeHello) {
  Start();
  const RawClient client(server->port());
  client.Send(wire::Get{});
  RunUntil(loop, [&] { return ClosedWith(Code::kInvalidArgument) == 1; });
  EXPECT_EQ(LastWords(client).message, "Get came, but a connection begins with Hello");
}

TEST_F(ServerTest, RefusesOtherVersions) {
  Start();
  const RawClient client(server->port());
  client.Send(wire::Hello{.min_version = 8, .max_version = 9, .name = "newer"});
  RunUntil(loop, [&] { return ClosedWith(Code::kInvalidArgument) == 1; });
  EXPECT_NE(LastWords(client).message.find("speaks versions 8 to 9"), std::string::npos);
}

TEST_F(ServerTest, RefusesWhoIsNotAuthorized) {
  Start({.authorize = Immediately([](const wire::Hello& hello, const PeerInfo&) {
           return hello.token == "good" ? OkStatus()
                                        : Status(Code::kPermissionDenied, "unknown token");
         })});
  const RawClient bad(server->port());
  bad.Send(wire::Hello{.token = "bad"});
  const RawClient good(server->port());
  good.Send(wire::Hello{.token = "good"});
  RunUntil(loop, [&] { return handler->opened == 1 && ClosedWith(Code::kPermissionDenied) == 1; });
  EXPECT_EQ(LastWords(bad).message, "unknown token");
}

TEST_F(ServerTest, TurnsAwayWhoIsTooMany) {
  Start({.max_connections = 1});
  const RawClient first(server->port());
  first.Send(wire::Hello{});
  RunUntil(loop, [&] { return handler->opened == 1; });
  const RawClient second(server->port());
  double refused = 0;
  RunUntil(loop, [&] {
    server->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == "optcache_net_refused_connections_total" && labels.back().second == "limit") {
            refused = value;
          }
        });
    return refused == 1;
  });
  EXPECT_EQ(LastWords(second).code, Code::kResourceExhausted);
}

TEST_F(ServerTest, APeerThatGoesBetweenFramesIsNoError) {
  Start();
  RawClient client(server->port());
  client.Send(wire::Hello{});
  RunUntil(loop, [&] { return handler->opened == 1; });
  client.Close();
  RunUntilClosed();
  ASSERT_EQ(handler->closed.size(), 1U);
  // The unread Welcome may turn the peer's close into a reset.
  EXPECT_TRUE(handler->closed[0].ok() || handler->closed[0].code() == Code::kUnavailable)
      << handler->closed[0].ToString();
}

TEST_F(ServerTest, StopSendsWhatIsQueued) {
  Start();
  const auto sample = Sample(3'000'000);
  bool stopped = false;
  handler->on_message = [&](Connection& connection, std::uint32_t id, const wire::Message&) {
    SendSample(connection, id, sample);
    server->Stop(kPatience, [&] { stopped = true; });
  };
  auto client = std::make_shared<Recorder>();
  client->on_open = [](Connection& connection) { connection.Send(5, wire::Get{}); };
  const auto connection = Dial(loop, server->address(), Patient(), client);
  RunUntil(loop, [&] { return stopped && client->closed.size() == 1; });
  EXPECT_TRUE(client->closed[0].ok()) << client->closed[0].ToString();
  ASSERT_EQ(client->payloads.size(), 1U);
  EXPECT_EQ(client->payloads[0].bytes, *sample);
}

TEST_F(ServerTest, StopEndsAfterItsGraceEvenIfAPeerDoesNotRead) {
  Start();
  handler->on_open = [&](Connection& connection) {
    SendSample(connection, 0, Sample(30'000'000));
    server->Stop(milliseconds(20), [] {});
  };
  const RawClient client(server->port());
  client.Send(wire::Hello{});
  RunUntil(loop, [&] { return handler->closed.size() == 1; });
  EXPECT_EQ(handler->closed[0].code(), Code::kUnavailable);
}

TEST_F(ServerTest, ADestroyedServerClosesItsConnections) {
  Start();
  const RawClient client(server->port());
  client.Send(wire::Hello{});
  RunUntil(loop, [&] { return handler->opened == 1; });
  server.reset();
  RunUntil(loop, [&] { return handler->closed.size() == 1; });
  EXPECT_EQ(handler->closed[0].code(), Code::kCancelled);
}

TEST_F(ServerTest, APortInUseIsASentence) {
  Start();
  const auto second = Listen(loop, server->address(), {}, handler);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kConflict);
  EXPECT_NE(second.error().message().find("another process listens there"), std::string::npos);
}

TEST_F(ServerTest, AnAddressThatIsNoneIsASentence) {
  EXPECT_EQ(Listen(loop, "nonsense", {}, handler).error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(Listen(loop, "host.invalid:0", {}, handler).has_value());
}

TEST_F(ServerTest, AUnixSocketThatNobodyListensOnIsReplaced) {
  const std::string path = testing::TempDir() + "optcache_server_test.sock";
  const std::string address = "unix:" + path;
  {
    // Left behind as by a process that was killed.
    auto first = Listen(loop, address, {}, handler);
    ASSERT_TRUE(first.has_value());
    ASSERT_EQ(::rename(path.c_str(), (path + ".kept").c_str()), 0);
  }
  ASSERT_EQ(::rename((path + ".kept").c_str(), path.c_str()), 0);
  auto second = Listen(loop, address, {}, handler);
  ASSERT_TRUE(second.has_value()) << second.error().ToString();
  EXPECT_EQ(Listen(loop, address, {}, handler).error().code(), Code::kConflict);

  auto client = std::make_shared<Recorder>();
  const auto connection = Dial(loop, address, Patient(), client);
  RunUntil(loop, [&] { return client->opened == 1; });
  connection->Close(OkStatus());
  RunUntil(loop, [&] { return client->closed.size() == 1; });
}

// Also where the process's umask would let others in.
TEST_F(ServerTest, AUnixSocketIsForItsUserAlone) {
  const std::string path = testing::TempDir() + "optcache_own_user_test.sock";
  const mode_t before = ::umask(0);
  const auto listening = Listen(loop, "unix:" + path, {}, handler);
  ::umask(before);
  ASSERT_TRUE(listening) << listening.error().ToString();
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

}  // namespace
}  // namespace optcache::net
