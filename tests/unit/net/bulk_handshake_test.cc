// How two ends agree on bulk, with one of them speaking out of turn.

#include <array>
#include <optional>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "net/internal/event_loop_impl.h"
#include "net/internal/stream.h"
#include "net/internal/tls_impl.h"
#include "unit/net/loop_fixture.h"
#include "unit/net/transports.h"

namespace optcache::net {
namespace {

// One end of a TLS connection that says what it likes.
class RawTls {
 public:
  RawTls(EventLoop& loop, UniqueFd fd, const TlsContext& tls, const std::string& server_name)
      : loop_(loop), stream_(Wrap(loop, std::move(fd)), tls, server_name) {}

  void Handshake() {
    bool done = false;
    stream_.AsyncHandshake([&](const HandshakeError* error) {
      EXPECT_EQ(error, nullptr);
      done = true;
    });
    RunUntil(loop_, [&] { return done; });
  }
  void Send(const std::vector<wire::Message>& messages) {
    std::vector<std::byte> bytes;
    for (const wire::Message& message : messages)
      EXPECT_TRUE(wire::AppendFrame(0, message, 0, bytes).ok());
    error_code error;
    EXPECT_EQ(stream_.write_some(asio::buffer(bytes), error), bytes.size());
  }
  // The next message that the other end sends.
  wire::Message Read() {
    std::optional<wire::Message> message;
    RunUntil(loop_, [&] {
      error_code error;
      std::array<std::byte, 4096> some;
      const std::size_t n = stream_.read_some(asio::buffer(some), error);
      received_.insert(received_.end(), some.begin(), some.begin() + n);
      const auto decoded = wire::DecodeFrame(received_);
      EXPECT_TRUE(decoded.has_value());
      if (const auto* frame = std::get_if<wire::Frame>(&*decoded)) message = frame->message;
      return message.has_value();
    });
    return message.value_or(wire::Message());
  }

 private:
  static StreamSocket Wrap(EventLoop& loop, UniqueFd fd) {
    StreamSocket socket(ContextOf(loop));
    socket.assign(asio::generic::stream_protocol(AF_UNSPEC, 0), fd.Release());
    return socket;
  }

  EventLoop& loop_;
  Stream stream_;
  std::vector<std::byte> received_;
};

class BulkHandshakeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listening =
        Listen(loop, "127.0.0.1:0", On(Transport::kBulk, ServerOptions{.name = "node-1"}), node);
    ASSERT_TRUE(listening.has_value());
    server = std::move(*listening);
  }
  RawTls DialRaw(const TlsContext& tls) {
    RawClient client(server->port());
    RawTls raw(loop, client.Release(), tls, "optcache-node");
    raw.Handshake();
    return raw;
  }

  EventLoop loop;
  std::shared_ptr<Recorder> node = std::make_shared<Recorder>();
  std::unique_ptr<Server> server;
};

TEST_F(BulkHandshakeTest, AnOfferIsTaken) {
  RawTls client = DialRaw(*CommonCa().Client());
  client.Send({wire::Hello{.bulk = true}});
  EXPECT_EQ(client.Read(), wire::Message(wire::Welcome{.name = "node-1", .bulk = true}));
  RunUntil(loop, [&] { return node->opened == 1; });
}

TEST_F(BulkHandshakeTest, WithoutAnOfferThereIsNoBulk) {
  RawTls client = DialRaw(*CommonCa().Client());
  client.Send({wire::Hello{}, wire::LeaseUpdate{}});
  EXPECT_EQ(client.Read(), wire::Message(wire::Welcome{.name = "node-1"}));
  RunUntil(loop, [&] { return node->messages.size() == 1; });
}

TEST_F(BulkHandshakeTest, TheOfferOfANodeIsLeft) {
  RawTls client = DialRaw(*CommonCa().Client({"optcache-node"}));
  client.Send({wire::Hello{.role = wire::Role::kNode, .bulk = true}});
  EXPECT_EQ(client.Read(), wire::Message(wire::Welcome{.name = "node-1"}));
}

TEST_F(BulkHandshakeTest, TheOfferOfAnOlderTlsIsLeft) {
  const auto old = CommonCa().Client();
  ASSERT_EQ(SSL_CTX_set_max_proto_version(old->impl().ssl.get(), TLS1_2_VERSION), 1);
  RawTls client = DialRaw(*old);
  client.Send({wire::Hello{.bulk = true}});
  EXPECT_EQ(client.Read(), wire::Message(wire::Welcome{.name = "node-1"}));
}

TEST_F(BulkHandshakeTest, WhatFollowsAnOfferWithinTlsEndsTheConnection) {
  RawTls client = DialRaw(*CommonCa().Client());
  client.Send({wire::Hello{.bulk = true}, wire::LeaseUpdate{}});
  EXPECT_EQ(client.Read(),
            wire::Message(wire::Refusal{.code = Code::kInvalidArgument,
                                        .message = "bytes followed a Hello that offers bulk"}));
  EXPECT_EQ(node->opened, 0);
}

// A server of ours gives up its place to one that lies.
class LyingServerTest : public testing::Test {
 protected:
  // What becomes of a dialed connection whose Hello is answered so.
  Status AnswerWith(DialOptions options, const std::vector<wire::Message>& answer) {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), generic, length), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), generic, &length), 0);
    const auto connection = Dial(loop, "127.0.0.1:" + std::to_string(ntohs(address.sin_port)),
                                 std::move(options), peer);
    UniqueFd accepted;
    const Watch watch = loop.WatchReadable(listener.get(), [&] {
      if (!accepted.valid()) accepted = UniqueFd(::accept(listener.get(), nullptr, nullptr));
    });
    RunUntil(loop, [&] { return accepted.valid(); });
    RawTls server(loop, std::move(accepted), *CommonCa().Server({"optcache-node"}), "");
    server.Handshake();
    EXPECT_TRUE(std::holds_alternative<wire::Hello>(server.Read()));
    server.Send(answer);
    RunUntil(loop, [&] { return peer->closed.size() == 1; });
    EXPECT_EQ(peer->opened, 0);
    return peer->closed.at(0);
  }

  EventLoop loop;
  std::shared_ptr<Recorder> peer = std::make_shared<Recorder>();
};

TEST_F(LyingServerTest, BulkThatWasNotOfferedEndsTheConnection) {
  EXPECT_EQ(AnswerWith(On(Transport::kTls, Patient()), {wire::Welcome{.bulk = true}}).message(),
            "Welcome takes an offer of bulk that was not made");
}

TEST_F(LyingServerTest, WhatFollowsWelcomeWithinTlsEndsTheConnection) {
  const Status status = AnswerWith(On(Transport::kBulk, Patient()),
                                   {wire::Welcome{.bulk = true}, wire::StoreReply{}});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::net
