#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/asio.h"
#include "net/connection.h"
#include "net/event_loop.h"
#include "net/internal/send_queue.h"
#include "net/internal/stall_watch.h"
#include "net/internal/stream.h"
#include "net/periodic_timer.h"
#include "wire/frame_reader.h"
#include "wire/session.h"

namespace optcache::net {

// The connection over a socket. It keeps itself alive while an operation is under way: from Start
// until OnClosed has returned.
//
//   [connecting] -> [TLS handshake] -> Hello, Welcome -> [leaving TLS for bulk] -> open -> closed
//
// Close() ends each of them; the asynchronous operations that it cancels find closed_ set and do
// nothing.
class SocketConnection final : public Connection {
 public:
  // An accepting side's Hello has come: call Admit or Close, now or later. Nothing is read before.
  // `versions` is an error if none is common: Close is left.
  using HelloHook =
      std::function<void(SocketConnection&, const wire::Hello&, const Status& versions)>;
  using ClosedHook = std::function<void(SocketConnection&)>;

  struct Options {
    ConnectionLimits limits;
    // For the TLS handshake and the peer's Hello or Welcome.
    Duration handshake_deadline = std::chrono::seconds(5);
    wire::VersionRange versions;                                // of an accepting side
    bool bulk = false;                                          // offer it, or take the offer
    std::shared_ptr<TrafficCounters> counters;                  // null: nowhere
    std::shared_ptr<HandshakeFailures> tls_failures = nullptr;  // null: nowhere
  };

  // An accepted socket: call Start.
  static std::shared_ptr<SocketConnection> Accepting(EventLoop& loop, Options options,
                                                     std::string address, std::string own_name,
                                                     HelloHook on_hello, ClosedHook on_closed);
  // A socket to be connected: call Start or Close.
  static std::shared_ptr<SocketConnection> Dialing(EventLoop& loop, Options options,
                                                   std::string address, const wire::Hello& hello,
                                                   std::shared_ptr<ConnectionHandler> handler);

  // Takes over a connected socket and begins the handshake; with TLS unless `tls` is null.
  // `server_name`: whom a dialing side wants to speak to.
  void Start(StreamSocket socket, const TlsContext* tls, const std::string& server_name);
  // Answers Hello with Welcome; `handler` has the connection from then on.
  void Admit(std::shared_ptr<ConnectionHandler> handler);
  // Sends what is queued, takes nothing more, and then closes.
  void CloseWhenSent();

  void Send(std::uint32_t request_id, const wire::Message& message) override;
  void Send(std::uint32_t request_id, const wire::Message& message, ByteSpan payload,
            std::shared_ptr<const void> pin) override;
  void Close(Status status) override;
  bool closed() const override { return closed_; }
  ByteCount queued_bytes() const override { return queue_.bytes(); }
  std::size_t queued_frames() const override { return queue_.frames(); }
  std::uint64_t received_bytes() const override { return bytes_in_; }
  std::uint64_t id() const override { return id_; }
  const std::string& peer_name() const override { return peer_name_; }
  wire::Role peer_role() const override { return session_.peer_role(); }
  wire::MemberId peer_member() const override { return peer_member_; }
  const std::string& address() const override { return peer_.address; }
  const PeerInfo& peer() const override { return peer_; }

 private:
  // How often one connection reads before the others have their turn.
  static constexpr int kReadsATurn = 8;

  // A buffer sequence for Asio that copies two pointers and no list.
  struct Gathered {
    using value_type = asio::const_buffer;
    using const_iterator = const asio::const_buffer*;
    const_iterator first = nullptr;
    const_iterator last = nullptr;
    const_iterator begin() const { return first; }
    const_iterator end() const { return last; }
  };

  struct PendingPayload {
    std::uint32_t request_id = 0;
    wire::Message message;
    std::shared_ptr<void> owner;  // of the sink
    bool refused = false;
  };
  SocketConnection(EventLoop& loop, Options options, std::string address, wire::Session session);

  std::shared_ptr<SocketConnection> Self();
  bool takes_more() const { return !closed_ && !closing_when_sent_ && !undecided_; }
  void OnTlsHandshake(const HandshakeError* failed);
  void BeginHello();
  std::array<asio::mutable_buffer, 2> Space();
  void Receive();
  void OnReceived(std::size_t received);
  void HandleReceived(std::size_t received);
  void HandleFrames();
  Status HandleFrame(wire::Frame frame);
  void HandleHello(const wire::Hello& hello, const Status& versions);
  Status HandleWelcome(const wire::Welcome& welcome);
  Status LeaveForBulk();
  void Open();
  void Queue(std::uint32_t request_id, const wire::Message& message, ByteSpan payload,
             std::shared_ptr<const void> pin);
  void StartPayload(wire::Frame frame);
  void EndPayload(bool intact);
  void ScheduleFlush();
  Gathered Gather();
  void Flush();
  void WriteWhenPossible();
  void OnWritten(std::size_t written);
  void OnAllWritten();
  void OnTransportError(const error_code& error, const char* doing);
  // What Close does; `tell` if the peer should hear why.
  enum class Tell { kPeer, kNobody };
  void CloseSocket(Status status, Tell tell);
  void SayRefusal(const Status& status);
  void Finish(const Status& status);
  void LookForStalls();

  EventLoop& loop_;
  const std::uint64_t id_;
  Options options_;
  PeerInfo peer_;
  std::string own_name_;  // of an accepting side
  HelloHook on_hello_;
  ClosedHook on_closed_;
  std::shared_ptr<ConnectionHandler> handler_;

  Stream stream_;
  wire::FrameReader reader_;
  wire::Session session_;
  std::optional<PendingPayload> pending_;
  std::string peer_name_;
  wire::MemberId peer_member_ = 0;

  SendQueue queue_;
  std::array<asio::const_buffer, 64> gathered_;  // of the write under way
  std::size_t offered_ = 0;                      // bytes in it
  std::size_t asked_ = 0;                        // bytes of space in the read under way
  bool ready_ = false;                           // connected, and TLS's handshake is done
  bool undecided_ = false;                       // Hello has come and waits for Admit or Close
  bool bulk_ = false;                            // leaves TLS, or has left it
  bool open_ = false;                            // the handler has heard of it
  bool dispatching_ = false;                     // handlers are being called for what was read
  bool writing_ = false;
  bool flush_scheduled_ = false;
  bool closing_when_sent_ = false;
  bool closed_ = false;

  Timer handshake_timer_;
  PeriodicTimer stall_timer_;
  StallWatch stall_watch_;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
};

}  // namespace optcache::net
