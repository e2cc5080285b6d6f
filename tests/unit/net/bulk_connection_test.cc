// Connections that left TLS, with somebody on the path.

#include <algorithm>

#include <gtest/gtest.h>

#include "unit/net/interposer.h"
#include "unit/net/transports.h"

namespace optcache::net {
namespace {

using Bytes = Interposer::Bytes;
using From = Interposer::From;
using Unit = Interposer::Unit;

class BulkConnectionTest : public testing::Test {
 protected:
  // A sidecar that asks a node for samples, through the interposer.
  void Connect(ServerOptions server_options, DialOptions dial_options) {
    node->on_message = [](Connection& connection, std::uint32_t id, const wire::Message&) {
      SendSample(connection, id, Sample(1000, id));
    };
    auto listening = Listen(loop, "127.0.0.1:0", std::move(server_options), node);
    ASSERT_TRUE(listening.has_value());
    server = std::move(*listening);
    path = std::make_unique<Interposer>(loop, server->port());
    dialed = Dial(loop, path->address(), dial_options, peer);
    RunUntil(loop, [&] { return peer->opened == 1 && node->opened == 1; });
  }
  void Connect() {
    Connect(On(Transport::kBulk, ServerOptions()), On(Transport::kBulk, Patient()));
  }
  void Ask(std::uint32_t id) { dialed->Send(id, wire::Get{}); }
  void RunUntilAnswered(std::size_t count) {
    RunUntil(loop, [&] { return peer->payloads.size() == count; });
  }
  // How the node ended the connection, and the sidecar was told so.
  Status NodesVerdict() {
    RunUntil(loop, [&] { return node->closed.size() == 1 && peer->closed.size() == 1; });
    EXPECT_FALSE(peer->closed[0].ok());
    return node->closed[0];
  }
  std::size_t Frames() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(path->seen, [](const Unit& unit) { return unit.is_frame(); }));
  }

  EventLoop loop;
  std::shared_ptr<Recorder> node = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> peer = std::make_shared<Recorder>();
  std::unique_ptr<Server> server;
  std::unique_ptr<Interposer> path;
  std::shared_ptr<Connection> dialed;
};

TEST_F(BulkConnectionTest, HelloIsHiddenAndWhatFollowsIsSealed) {
  DialOptions options = On(Transport::kBulk, Patient({.name = "pod"}));
  options.token = []() -> Result<std::string> { return "very-secret-token"; };
  Connect(On(Transport::kBulk, ServerOptions()), options);
  Ask(1);
  RunUntilAnswered(1);
  EXPECT_TRUE(peer->payloads[0].bytes == *Sample(1000, 1));
  EXPECT_EQ(Frames(), 2U);
  for (const Unit& unit : path->seen) {
    EXPECT_EQ(AsText(unit.bytes).find("very-secret-token"), std::string_view::npos);
    if (!unit.is_frame()) continue;
    EXPECT_EQ(unit.bytes[4], std::byte{wire::kSealedFlag});
    EXPECT_TRUE(unit.type() == wire::kTypeOf<wire::Get> ||
                unit.type() == wire::kTypeOf<wire::SampleReply>);
  }
}

TEST_F(BulkConnectionTest, EitherSideAloneSwitchesItOff) {
  ServerOptions without = On(Transport::kTls, ServerOptions());
  Connect(std::move(without), On(Transport::kBulk, Patient()));
  Ask(1);
  RunUntilAnswered(1);
  EXPECT_EQ(Frames(), 0U);
}

TEST_F(BulkConnectionTest, TheDialingSideAloneSwitchesItOff) {
  Connect(On(Transport::kBulk, ServerOptions()), On(Transport::kTls, Patient()));
  Ask(1);
  RunUntilAnswered(1);
  EXPECT_EQ(Frames(), 0U);
}

TEST_F(BulkConnectionTest, NodesStayInTls) {
  Connect(On(Transport::kBulk, ServerOptions()),
          On(Transport::kBulk, Patient({.role = wire::Role::kNode})));
  Ask(1);
  RunUntilAnswered(1);
  EXPECT_EQ(Frames(), 0U);
}

TEST_F(BulkConnectionTest, AChangedFrameEndsTheConnection) {
  Connect();
  path->change = [](const Unit& unit) -> std::vector<Bytes> {
    Bytes changed = unit.bytes;
    changed.at(wire::kHeaderBytes) ^= std::byte{1};  // of the dataset asked for
    return {changed};
  };
  Ask(1);
  EXPECT_EQ(NodesVerdict().code(), Code::kPermissionDenied);
  EXPECT_TRUE(node->messages.empty());
}

TEST_F(BulkConnectionTest, ARepeatedFrameEndsTheConnection) {
  Connect();
  path->change = [](const Unit& unit) -> std::vector<Bytes> { return {unit.bytes, unit.bytes}; };
  Ask(1);
  EXPECT_EQ(NodesVerdict().code(), Code::kPermissionDenied);
  EXPECT_EQ(node->messages.size(), 1U);
}

TEST_F(BulkConnectionTest, AFrameThatIsSentAgainLaterEndsTheConnection) {
  Connect();
  Ask(1);
  RunUntilAnswered(1);
  const auto old = std::ranges::find_if(
      path->seen, [](const Unit& unit) { return unit.is_frame() && unit.from == From::kDialer; });
  path->Inject(From::kDialer, old->bytes);
  EXPECT_EQ(NodesVerdict().code(), Code::kPermissionDenied);
  EXPECT_EQ(node->messages.size(), 1U);
}

TEST_F(BulkConnectionTest, FramesThatChangePlacesEndTheConnection) {
  Connect();
  Bytes held;
  path->change = [&](const Unit& unit) -> std::vector<Bytes> {
    if (unit.from == From::kAcceptor) return {unit.bytes};
    if (held.empty()) {
      held = unit.bytes;
      return {};
    }
    return {unit.bytes, held};
  };
  Ask(1);
  Ask(2);
  EXPECT_EQ(NodesVerdict().code(), Code::kPermissionDenied);
  EXPECT_TRUE(node->messages.empty());
}

TEST_F(BulkConnectionTest, AFrameThatIsLeftOutEndsTheConnection) {
  Connect();
  bool dropped = false;
  path->change = [&](const Unit& unit) -> std::vector<Bytes> {
    if (unit.from == From::kDialer && !std::exchange(dropped, true)) return {};
    return {unit.bytes};
  };
  Ask(1);
  Ask(2);
  EXPECT_EQ(NodesVerdict().code(), Code::kPermissionDenied);
  EXPECT_TRUE(node->messages.empty());
}

TEST_F(BulkConnectionTest, AFrameThatIsTurnedRoundEndsTheConnection) {
  Connect();
  path->change = [&](const Unit& unit) -> std::vector<Bytes> {
    if (unit.from == From::kAcceptor) path->Inject(From::kDialer, unit.bytes);
    return {unit.bytes};
  };
  Ask(1);
  EXPECT_EQ(NodesVerdict().code(), Code::kPermissionDenied);
}

TEST_F(BulkConnectionTest, AFrameOfAnotherConnectionEndsTheConnection) {
  Connect();
  const auto other = std::make_shared<Recorder>();
  const auto second = Dial(loop, path->address(), On(Transport::kBulk, Patient()), other);
  RunUntil(loop, [&] { return other->opened == 1 && node->opened == 2; });
  path->change = [&](const Unit& unit) -> std::vector<Bytes> {
    path->Inject(From::kDialer, unit.bytes);  // Into the first, where it would be the first too.
    return {};
  };
  second->Send(1, wire::Get{});
  RunUntil(loop, [&] { return node->closed.size() == 1; });
  EXPECT_EQ(node->closed[0].code(), Code::kPermissionDenied);
  EXPECT_TRUE(node->messages.empty());
}

TEST_F(BulkConnectionTest, AFrameWithoutSealEndsTheConnection) {
  Connect();
  Bytes frame;
  EXPECT_TRUE(wire::AppendFrame(1, wire::Get{}, 0, frame).ok());
  path->Inject(From::kDialer, frame);
  const Status status = NodesVerdict();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "Get is not sealed");
}

TEST_F(BulkConnectionTest, ADamagedPayloadIsDataLoss) {
  Connect();
  path->change = [](const Unit& unit) -> std::vector<Bytes> {
    Bytes changed = unit.bytes;
    if (unit.from == From::kAcceptor) changed.back() ^= std::byte{1};
    return {changed};
  };
  Ask(1);
  RunUntilAnswered(1);
  EXPECT_EQ(peer->payloads[0].status.code(), Code::kDataLoss);
  EXPECT_TRUE(peer->closed.empty());
}

TEST_F(BulkConnectionTest, WhoIsDecidedLaterLeavesTlsToo) {
  std::function<void(Status)> decide;
  ServerOptions options = On(Transport::kBulk, ServerOptions());
  options.authorize = [&](const wire::Hello&, const PeerInfo&, std::function<void(Status)> done) {
    decide = std::move(done);
    loop.Post([&] { decide(OkStatus()); });
  };
  Connect(std::move(options), On(Transport::kBulk, Patient()));
  Ask(1);
  RunUntilAnswered(1);
  EXPECT_EQ(Frames(), 2U);
}

}  // namespace
}  // namespace optcache::net
