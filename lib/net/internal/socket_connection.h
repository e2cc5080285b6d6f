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
#include "wire/frame_reader.h"
#include "wire/session.h"

namespace optcache::net {

// The connection over a socket. It keeps itself alive while an operation is under way: from Start
// or Connect until OnClosed has returned.
//
// Lifetime of the socket: [connecting] -> handshake -> open -> closed. Close() ends each of them;
// the asynchronous operations that it cancels find closed_ set and do nothing.
class SocketConnection final : public Connection {
 public:
  // What an accepting side decides about a Hello: who handles the connection, or why not.
  using HelloHook = std::function<Result<std::shared_ptr<ConnectionHandler>>(SocketConnection&,
                                                                             const wire::Hello&)>;
  using ClosedHook = std::function<void(SocketConnection&)>;

  struct Options {
    ConnectionLimits limits;
    Duration handshake_deadline = std::chrono::seconds(5);  // for the peer's Hello or Welcome
    std::shared_ptr<TrafficCounters> counters;              // null: nowhere
  };

  // An accepted socket: call Start.
  static std::shared_ptr<SocketConnection> Accepting(EventLoop& loop, Options options,
                                                     std::string address, std::string own_name,
                                                     HelloHook on_hello, ClosedHook on_closed);
  // A socket to be connected: call Start or Close.
  static std::shared_ptr<SocketConnection> Dialing(EventLoop& loop, Options options,
                                                   std::string address, const wire::Hello& hello,
                                                   std::shared_ptr<ConnectionHandler> handler);

  // Takes over a connected socket and begins the handshake.
  void Start(StreamSocket socket);
  // Sends what is queued, takes nothing more, and then closes.
  void CloseWhenSent();

  void Send(std::uint32_t request_id, const wire::Message& message) override;
  void Send(std::uint32_t request_id, const wire::Message& message, ByteSpan payload,
            std::shared_ptr<const void> pin) override;
  void Close(Status status) override;
  bool closed() const override { return closed_; }
  ByteCount queued_bytes() const override { return queue_.bytes(); }
  std::uint64_t id() const override { return id_; }
  const std::string& peer_name() const override { return peer_name_; }
  wire::Role peer_role() const override { return session_.peer_role(); }
  wire::MemberId peer_member() const override { return peer_member_; }
  const std::string& address() const override { return address_; }

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
  bool takes_more() const { return !closed_ && !closing_when_sent_; }
  std::array<asio::mutable_buffer, 2> Space();
  void Receive();
  void OnReceived(std::size_t received);
  void HandleReceived(std::size_t received);
  Status HandleFrame(wire::Frame frame);
  Status HandleHello(const wire::Hello& hello);
  void HandleWelcome(const wire::Welcome& welcome);
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
  void WatchForStalls();

  EventLoop& loop_;
  const std::uint64_t id_;
  Options options_;
  std::string address_;
  std::string own_name_;  // of an accepting side
  HelloHook on_hello_;
  ClosedHook on_closed_;
  std::shared_ptr<ConnectionHandler> handler_;

  StreamSocket socket_;
  wire::FrameReader reader_;
  wire::Session session_;
  std::optional<PendingPayload> pending_;
  std::string peer_name_;
  wire::MemberId peer_member_ = 0;

  SendQueue queue_;
  std::array<asio::const_buffer, 64> gathered_;  // of the write under way
  std::size_t offered_ = 0;                      // bytes in it
  std::size_t asked_ = 0;                        // bytes of space in the read under way
  bool dispatching_ = false;                     // handlers are being called for what was read
  bool writing_ = false;
  bool flush_scheduled_ = false;
  bool closing_when_sent_ = false;
  bool closed_ = false;

  Timer handshake_timer_;
  Timer stall_timer_;
  StallWatch stall_watch_;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
};

}  // namespace optcache::net
