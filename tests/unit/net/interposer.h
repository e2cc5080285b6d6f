#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "net/event_loop.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {

// Somebody on the path between two ends: sees each TLS record and each plaintext frame whole, and
// may send on something else. For one loop and little traffic.
class Interposer {
 public:
  using Bytes = std::vector<std::byte>;
  enum class From { kDialer, kAcceptor };
  struct Unit {
    From from;
    Bytes bytes;
    bool is_frame() const { return bytes.at(0) == std::byte{'O'}; }
    wire::MessageType type() const { return static_cast<wire::MessageType>(bytes.at(3)); }
  };

  // The server sees it at `from`.
  Interposer(EventLoop& loop, std::uint16_t server_port, const char* from = "127.0.0.1")
      : loop_(loop),
        server_port_(server_port),
        from_(from),
        listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 5), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &length), 0);
    port_ = ntohs(address.sin_port);
    watch_ = loop_.WatchReadable(listener_.get(), [this] { OnAccept(); });
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // What goes on in place of a unit; empty function: the same.
  std::function<std::vector<Bytes>(const Unit&)> change;
  // All that came, of all connections.
  std::vector<Unit> seen;

  // Sends on the first connection as if `from` had said it.
  void Inject(From from, const Bytes& bytes) { pairs_.at(0)->Other(from).Send(bytes); }

 private:
  struct End {
    void Send(const Bytes& bytes) const {
      ::send(client->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    std::unique_ptr<RawClient> client;
    Bytes received;
    Watch watch;
  };
  struct Pair {
    End dialer;
    End acceptor;
    End& Of(From from) { return from == From::kDialer ? dialer : acceptor; }
    End& Other(From from) { return from == From::kDialer ? acceptor : dialer; }
  };

  void OnAccept() {
    UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
    auto pair = std::make_unique<Pair>();
    pair->dialer.client = std::make_unique<RawClient>(std::move(fd));
    pair->acceptor.client = std::make_unique<RawClient>(server_port_, from_);
    for (const From from : {From::kDialer, From::kAcceptor}) {
      pair->Of(from).watch = loop_.WatchReadable(
          pair->Of(from).client->fd(), [this, from, at = pair.get()] { OnReadable(*at, from); });
    }
    pairs_.push_back(std::move(pair));
  }

  void OnReadable(Pair& pair, From from) {
    End& end = pair.Of(from);
    Bytes some(256U << 10U);
    const ssize_t n = ::recv(end.client->fd(), some.data(), some.size(), 0);
    if (n <= 0) {
      end.watch.Cancel();
      ::shutdown(pair.Other(from).client->fd(), SHUT_WR);
      return;
    }
    end.received.insert(end.received.end(), some.begin(), some.begin() + n);
    for (;;) {
      const std::size_t size = UnitSize(end.received);
      if (size == 0 || size > end.received.size()) return;
      const auto middle = end.received.begin() + static_cast<std::ptrdiff_t>(size);
      seen.push_back({.from = from, .bytes = Bytes(end.received.begin(), middle)});
      end.received.erase(end.received.begin(), middle);
      if (!change) {
        pair.Other(from).Send(seen.back().bytes);
        continue;
      }
      for (const Bytes& bytes : change(seen.back()))
        pair.Other(from).Send(bytes);
    }
  }

  // 0: that cannot be told yet.
  static std::size_t UnitSize(const Bytes& bytes) {
    const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
    if (bytes.empty()) return 0;
    if (bytes[0] != std::byte{'O'}) return bytes.size() < 5 ? 0 : 5 + at(3) * 256 + at(4);
    if (bytes.size() < wire::kHeaderBytes) return 0;
    const auto header = wire::ParseHeader(bytes);
    if (!header) return bytes.size();
    return wire::kHeaderBytes + header->body_length + header->payload_length +
           ((header->flags & wire::kSealedFlag) != 0 ? wire::kTagBytes : 0);
  }

  EventLoop& loop_;
  std::uint16_t server_port_;
  const char* from_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  Watch watch_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

}  // namespace optcache::net
