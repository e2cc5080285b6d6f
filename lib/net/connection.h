#pragma once

// One conversation in wire messages (docs/formats/wire.md) over TCP, TLS or a Unix socket, on one
// event loop. Connections are made by net/server.h and net/dialer.h, which also do the handshakes:
// a handler sees a connection only after Hello and Welcome.
//
// A payload goes from the sender's memory to the receiver's by the kernel's copies alone, and TLS's
// where it is used: Send takes it by reference and pins it, and ConnectionHandler::OnPayloadStart
// says where it is to lie.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/status.h"
#include "net/peer.h"
#include "wire/messages.h"

namespace optcache::net {

class Connection;

// The DNS name in every node's certificate: what others check when they connect to one.
inline constexpr std::string_view kNodeServerName = "optcache-node";

struct ConnectionLimits {
  // What may wait to be sent beside the largest frame, which is always admitted. Beyond it the
  // receiver is too slow: the connection is closed with kResourceExhausted.
  ByteCount max_queued_bytes = 1_GiB;
  std::size_t max_queued_frames = 65'536;
  ByteCount max_payload_bytes = wire::kMaxPayloadBytes;
  // A frame that has begun to arrive, or frames that wait to be sent, must end or move by this many
  // bytes within this time: else the connection is closed with kDeadlineExceeded.
  Duration stall_deadline = std::chrono::seconds(30);
  ByteCount stall_bytes = 64_KiB;
  // Closed with kDeadlineExceeded when nothing at all arrives for this long; zero: never.
  Duration idle_deadline = Duration::zero();
};

// Where a payload goes. `owner` keeps `destination` alive until OnPayload or OnClosed has returned.
struct PayloadSink {
  MutableByteSpan destination;  // of the payload's length; empty: read it and throw it away
  std::shared_ptr<void> owner;
};

// What a program does with a connection. All calls come on the loop's thread, never from within
// Send, Close or Dial; each may call Send and Close. One handler may serve many connections.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  // The handshake is done. First call, unless OnClosed comes instead.
  virtual void OnOpen(Connection& connection) = 0;

  // A message that carries no payload.
  virtual void OnMessage(Connection& connection, std::uint32_t request_id,
                         wire::Message message) = 0;

  // A message that carries a payload of `length` bytes (0 is possible). The default refuses it.
  virtual PayloadSink OnPayloadStart(Connection& connection, std::uint32_t request_id,
                                     const wire::Message& message, ByteCount length) {
    (void)connection, (void)request_id, (void)message, (void)length;
    return {};
  }

  // The end of that payload. Ok: the bytes lie in the sink and their CRC is right. kDataLoss: the
  // CRC is wrong. kCancelled: the sink was empty and the bytes are gone. The connection goes on in
  // all three cases.
  virtual void OnPayload(Connection& /*connection*/, std::uint32_t /*request_id*/,
                         wire::Message /*message*/, Status /*status*/) {}

  // Last call, exactly once. Ok: this side closed without an error, or the peer went between two
  // frames. A payload that had begun is lost without OnPayload.
  virtual void OnClosed(Connection& connection, const Status& status) = 0;
};

// What many connections did together, for their owner's VisitCounters.
struct TrafficCounters {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t frames_in = 0;
  std::uint64_t frames_out = 0;
  std::uint64_t corrupt_payloads = 0;
  std::uint64_t refused_payloads = 0;
  std::uint64_t unsendable_messages = 0;
  static constexpr std::size_t kCodes = static_cast<std::size_t>(Code::kInternal) + 1;
  std::array<std::uint64_t, kCodes> closed{};  // by the Code of OnClosed

  // `labels` say whose they are.
  void Visit(const CounterVisitor& visitor, const MetricLabels& labels) const;
};

// Used on the loop's thread only. Lives at least until OnClosed has returned; keep a weak_ptr or
// the id to speak of it later.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // From OnOpen on. Queues a message; the frames queued in one turn of the loop leave in one system
  // call. Nothing happens on a closed connection: OnClosed has come or is about to;
  // nor with a message that is newer than the version that both sides speak. A message that is
  // larger than one may be closes the connection with kResourceExhausted.
  virtual void Send(std::uint32_t request_id, const wire::Message& message) = 0;

  // The same with a payload, which is written from where it lies. `pin` keeps those bytes alive and
  // unchanged, and is dropped once they are written or the connection has closed. The message
  // carries the payload's CRC-32C.
  virtual void Send(std::uint32_t request_id, const wire::Message& message, ByteSpan payload,
                    std::shared_ptr<const void> pin) = 0;

  // Ends the connection: what is queued is dropped, and if `status` is an error the peer is told it
  // in a Refusal as far as the socket takes it at once. OnClosed follows.
  virtual void Close(Status status) = 0;

  virtual bool closed() const = 0;
  // What waits to be sent: heads and payloads.
  virtual ByteCount queued_bytes() const = 0;
  virtual std::size_t queued_frames() const = 0;
  // All that has come so far, what has come of a frame that is not complete included.
  virtual std::uint64_t received_bytes() const = 0;
  // Never used twice in a process.
  virtual std::uint64_t id() const = 0;
  // The name that the peer gave in Hello or Welcome.
  virtual const std::string& peer_name() const = 0;
  // What the peer is: an accepted one says so in Hello; who was dialed is a node.
  virtual wire::Role peer_role() const = 0;
  // Of an accepted node; 0 otherwise.
  virtual wire::MemberId peer_member() const = 0;
  // Where the peer is: "10.0.0.7:4123" or "unix:/run/node.sock"; the address given to Dial.
  virtual const std::string& address() const = 0;
  // The same, with what its certificate proved.
  virtual const PeerInfo& peer() const = 0;

 protected:
  Connection() = default;
};

}  // namespace optcache::net
