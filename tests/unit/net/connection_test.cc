#include "net/connection.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "unit/net/loop_fixture.h"
#include "unit/net/transports.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A node and a sidecar on one loop.
class ConnectionTest : public testing::TestWithParam<Transport> {
 protected:
  void Connect(ConnectionLimits node_limits = {}, wire::Role role = wire::Role::kSidecar) {
    auto listening =
        Listen(loop, "127.0.0.1:0", On(transport, {.name = "node-1", .limits = node_limits}), node);
    ASSERT_TRUE(listening.has_value());
    server = std::move(*listening);
    dialed = Dial(loop, server->address(),
                  On(transport, Patient({.role = role, .name = "peer", .member = 9})), peer);
    RunUntil(loop, [&] { return peer->opened == 1; });
  }

  const Transport transport = GetParam();

  EventLoop loop;
  std::shared_ptr<Recorder> node = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> peer = std::make_shared<Recorder>();
  std::unique_ptr<Server> server;
  std::shared_ptr<Connection> dialed;
};

TEST_P(ConnectionTest, SamplesOfAllSizesArriveWhole) {
  const std::vector<std::size_t> sizes = {0,       1,       1000,      1024,      4096,
                                          65'535,  65'536,  110'000,   262'143,   262'144,
                                          262'145, 900'000, 5'000'000, 50'000'000};
  node->on_message = [&](Connection& connection, std::uint32_t id, const wire::Message&) {
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      SendSample(connection, id, Sample(sizes[i], i), i);
    }
  };
  Connect();
  dialed->Send(77, wire::Get{});
  RunUntil(loop, [&] { return peer->payloads.size() == sizes.size(); });
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    const auto& payload = peer->payloads[i];
    EXPECT_TRUE(payload.status.ok()) << payload.status.ToString();
    EXPECT_EQ(std::get<wire::SampleReply>(payload.message).index, i);
    EXPECT_TRUE(payload.bytes == *Sample(sizes[i], i)) << sizes[i];
  }
}

TEST_P(ConnectionTest, ManyFramesInBothDirections) {
  constexpr std::uint32_t kFrames = 20'000;
  node->on_message = [&](Connection& connection, std::uint32_t id, const wire::Message&) {
    connection.Send(id, wire::StoreReply{.id = id});
  };
  Connect();
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    dialed->Send(i, wire::StreamProgress{.position = i});
  }
  RunUntil(loop, [&] { return peer->messages.size() == kFrames; });
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    ASSERT_EQ(peer->messages[i].first, i);
    ASSERT_EQ(peer->messages[i].second, wire::Message(wire::StoreReply{.id = i}));
  }
}

TEST_P(ConnectionTest, PayloadsAndMessagesMayMix) {
  Random random(11);
  std::vector<std::size_t> sizes(300);
  for (auto& size : sizes)
    size = random.Below(4) == 0 ? random.Below(300'000) : random.Below(500);
  Connect();
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    const auto sample = Sample(sizes[i], i);
    dialed->Send(i, wire::Put{.crc = Crc32c(*sample)}, *sample, sample);
    dialed->Send(i, wire::LeaseUpdate{});
  }
  RunUntil(loop, [&] { return node->messages.size() == sizes.size(); });
  ASSERT_EQ(node->payloads.size(), sizes.size());
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(node->payloads[i].bytes == *Sample(sizes[i], i)) << i;
    EXPECT_TRUE(node->payloads[i].status.ok());
  }
}

TEST_P(ConnectionTest, ARefusedPayloadIsThrownAwayAndTheConnectionGoesOn) {
  node->refuse_payloads = true;
  Connect();
  const auto sample = Sample(3'000'000);
  dialed->Send(1, wire::Put{.crc = Crc32c(*sample)}, *sample, sample);
  dialed->Send(2, wire::LeaseUpdate{});
  RunUntil(loop, [&] { return node->messages.size() == 1; });
  ASSERT_EQ(node->payloads.size(), 1U);
  EXPECT_EQ(node->payloads[0].status.code(), Code::kCancelled);
}

TEST_P(ConnectionTest, ADamagedPayloadIsDataLossAndTheConnectionGoesOn) {
  Connect();
  const auto sample = Sample(300'000);
  dialed->Send(1, wire::Put{.crc = Crc32c(*sample) + 1}, *sample, sample);
  dialed->Send(2, wire::LeaseUpdate{});
  RunUntil(loop, [&] { return node->messages.size() == 1; });
  ASSERT_EQ(node->payloads.size(), 1U);
  EXPECT_EQ(node->payloads[0].status.code(), Code::kDataLoss);
}

TEST_P(ConnectionTest, ThePinLastsUntilTheBytesAreWrittenAndNoLonger) {
  Connect();
  auto sample = Sample(20'000'000);
  const std::weak_ptr<std::vector<std::byte>> alive = sample;
  const ByteSpan bytes = *sample;
  dialed->Send(1, wire::Put{.crc = Crc32c(bytes)}, bytes, std::move(sample));
  EXPECT_FALSE(alive.expired());
  RunUntil(loop, [&] { return node->payloads.size() == 1; });
  EXPECT_TRUE(node->payloads[0].status.ok());
  RunUntil(loop, [&] { return alive.expired(); });
  EXPECT_EQ(dialed->queued_bytes(), 0U);
}

TEST_P(ConnectionTest, AReceiverThatIsTooSlowIsCut) {
  Connect({.max_queued_bytes = 10'000'000});
  auto sample = Sample(1'000'000);
  const std::weak_ptr<std::vector<std::byte>> alive = sample;
  Connection& to_peer = *node->open.begin()->second;
  int sent = 0;
  // Nobody reads as long as the loop does not turn.
  while (!to_peer.closed() && sent < 1000) {
    SendSample(to_peer, 0, sample);
    ++sent;
  }
  EXPECT_EQ(sent, 11);  // Beside one of them: the tenth's head passes the limit.
  sample.reset();
  RunUntil(loop, [&] { return node->closed.size() == 1; });
  EXPECT_EQ(node->closed[0].code(), Code::kResourceExhausted);
  EXPECT_TRUE(alive.expired());
}

TEST_P(ConnectionTest, AFrameLargerThanWhatMayWaitGoesAllTheSame) {
  Connect({.max_queued_bytes = 1'000'000});
  Connection& to_peer = *node->open.begin()->second;
  to_peer.Send(0, wire::StoreReply{});
  SendSample(to_peer, 0, Sample(3'000'000));
  to_peer.Send(0, wire::StoreReply{});
  EXPECT_FALSE(to_peer.closed());
  EXPECT_EQ(to_peer.queued_frames(), 3U);
  RunUntil(loop, [&] { return peer->payloads.size() == 1; });
  EXPECT_TRUE(peer->payloads[0].status.ok());
  EXPECT_FALSE(to_peer.closed());
}

TEST_P(ConnectionTest, TheNumberOfWaitingFramesIsBoundedToo) {
  Connect({.max_queued_frames = 100});
  Connection& to_peer = *node->open.begin()->second;
  for (int i = 0; i < 100; ++i)
    to_peer.Send(0, wire::StoreReply{});
  EXPECT_FALSE(to_peer.closed());
  to_peer.Send(0, wire::StoreReply{});
  EXPECT_TRUE(to_peer.closed());
  to_peer.Send(0, wire::StoreReply{});  // Has no effect.
  RunUntil(loop, [&] { return node->closed.size() == 1 && peer->closed.size() == 1; });
  EXPECT_EQ(node->closed[0].code(), Code::kResourceExhausted);
  EXPECT_EQ(peer->closed[0].code(), Code::kResourceExhausted);  // Told by the Refusal.
}

TEST_P(ConnectionTest, AMessageThatIsTooLargeClosesTheConnectionAndIsCounted) {
  Connect();
  Connection& to_peer = *node->open.begin()->second;
  to_peer.Send(0, wire::LeaseUpdate{.leases = {wire::kMaxItems, {1, 2}}});
  EXPECT_FALSE(to_peer.closed());
  to_peer.Send(0, wire::LeaseUpdate{.leases = {wire::kMaxItems + 1, {1, 2}}});
  EXPECT_TRUE(to_peer.closed());
  RunUntil(loop, [&] { return node->closed.size() == 1 && peer->closed.size() == 1; });
  EXPECT_EQ(node->closed[0].code(), Code::kResourceExhausted);
  EXPECT_EQ(peer->closed[0].code(), Code::kResourceExhausted);  // Told by the Refusal.
  double unsendable = 0;
  server->VisitCounters([&](MetricKind, std::string_view name, const MetricLabels&, double value) {
    if (name == "optcache_net_unsendable_messages_total") unsendable += value;
  });
  EXPECT_EQ(unsendable, 1);
}

TEST(Connection, APeerThatDoesNotReadIsCutAfterTheStallDeadline) {
  EventLoop loop;
  const auto node = std::make_shared<Recorder>();
  auto listening =
      Listen(loop, "127.0.0.1:0", {.limits = {.stall_deadline = milliseconds(20)}}, node);
  ASSERT_TRUE(listening.has_value());
  const RawClient client((*listening)->port());
  client.Send(wire::Hello{});
  node->on_open = [](Connection& connection) { SendSample(connection, 0, Sample(40'000'000)); };
  RunUntil(loop, [&] { return node->closed.size() == 1; });
  EXPECT_EQ(node->closed[0].code(), Code::kDeadlineExceeded);
}

TEST_P(ConnectionTest, CloseTellsThePeerWhy) {
  Connect();
  dialed->Close(Status(Code::kConflict, "the incarnation is old"));
  EXPECT_TRUE(dialed->closed());
  EXPECT_TRUE(peer->closed.empty());  // Not from within Close.
  RunUntil(loop, [&] { return node->closed.size() == 1 && peer->closed.size() == 1; });
  EXPECT_EQ(peer->closed[0].message(), "the incarnation is old");
  EXPECT_EQ(node->closed[0].code(), Code::kConflict);
  EXPECT_EQ(node->closed[0].message(), "the peer refused: the incarnation is old");
}

TEST_P(ConnectionTest, AHandlerMayCloseInEveryCall) {
  const auto give_up = [](Connection& connection) { connection.Close(OkStatus()); };
  for (int place = 0; place < 4; ++place) {
    node = std::make_shared<Recorder>();
    peer = std::make_shared<Recorder>();
    if (place == 0) node->on_open = give_up;
    if (place == 1) {
      node->on_message = [&](Connection& connection, auto, const auto&) { give_up(connection); };
    }
    if (place == 2) node->on_payload = [&](Connection& connection, auto) { give_up(connection); };
    if (place == 3) node->on_closed = give_up;
    peer->on_open = [&](Connection& connection) {
      const auto sample = Sample(100'000);
      connection.Send(1, wire::LeaseUpdate{});
      connection.Send(2, wire::Put{.crc = Crc32c(*sample)}, *sample, sample);
      if (place == 3) connection.Close(OkStatus());
    };
    server = *Listen(loop, "127.0.0.1:0", On(transport, ServerOptions()), node);
    dialed = Dial(loop, server->address(), On(transport, Patient()), peer);
    RunUntil(loop, [&] { return node->closed.size() == 1 && peer->closed.size() == 1; });
    EXPECT_EQ(server->open_connections(), 0U);
  }
}

TEST_P(ConnectionTest, ANodeThatSpeaksOutOfTurnIsCut) {
  Connect();
  node->open.begin()->second->Send(0, wire::Lookup{});
  RunUntil(loop, [&] { return peer->closed.size() == 1 && node->closed.size() == 1; });
  EXPECT_EQ(peer->closed[0].code(), Code::kInvalidArgument);
  EXPECT_EQ(node->closed[0].message(),
            "the peer refused: Lookup came, but a node may not send that here");
}

TEST_P(ConnectionTest, CountsWhatPasses) {
  auto counters = std::make_shared<TrafficCounters>();
  DialOptions options = On(transport, Patient());
  options.counters = counters;
  auto listening = Listen(loop, "127.0.0.1:0", On(transport, ServerOptions()), node);
  const auto connection = Dial(loop, (*listening)->address(), options, peer);
  RunUntil(loop, [&] { return peer->opened == 1; });
  connection->Send(1, wire::LeaseUpdate{});
  connection->Close(OkStatus());
  RunUntil(loop, [&] { return peer->closed.size() == 1; });
  EXPECT_EQ(counters->frames_in, 1U);   // Welcome
  EXPECT_EQ(counters->frames_out, 2U);  // Hello, LeaseUpdate
  EXPECT_GT(counters->bytes_in, wire::kHeaderBytes);
  EXPECT_EQ(counters->closed[0], 1U);
  int names = 0;
  counters->Visit(
      [&](MetricKind, std::string_view name, const MetricLabels& labels, double) {
        EXPECT_TRUE(name.starts_with("optcache_net_"));
        EXPECT_EQ(labels.front().second, "test");
        ++names;
      },
      {{"side", "test"}});
  EXPECT_EQ(names, 18);
}

INSTANTIATE_TEST_SUITE_P(On, ConnectionTest,
                         testing::Values(Transport::kPlain, Transport::kTls, Transport::kBulk),
                         [](const auto& one) { return TransportName(one.param); });

}  // namespace
}  // namespace optcache::net
