// Turns bytes of a socket into calls of a handler, and messages into bytes.
//
//   in    Stream (TLS or not) ─► FrameReader ─► Session ─► ConnectionHandler
//                                   └─► sink: a payload's bytes, read where they stay
//   out   Send ─► SendQueue: heads, and payloads where they lie ─► Gather ─► one write ─► Stream
//
// The idea: system calls are what costs, so a read fills the rest of a payload and the next frame's
// buffer at once, and a full one is followed by another read. What handlers send while they are
// called leaves together afterwards (ScheduleFlush).
//
// Invariants: at most one read and one write are under way. Each operation holds the connection
// alive and does nothing once `closed_` is set. Handlers are called from the loop, never from
// within their own Send or Close; OnClosed is posted, comes once, and is the last call. Nothing is
// read between Hello and the decision about it, and in bulk mode Welcome is the last frame that TLS
// carries (LeaveForBulk).

#include "net/internal/socket_connection.h"

#include <sys/socket.h>

#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/internal/bulk.h"
#include "net/internal/event_loop_impl.h"
#include "wire/codec.h"

namespace optcache::net {
namespace {

// Of all loops of the process.
std::uint64_t NextId() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

SocketConnection::SocketConnection(EventLoop& loop, Options options, std::string address,
                                   wire::Session session)
    : loop_(loop),
      id_(NextId()),
      options_(std::move(options)),
      peer_{.address = std::move(address)},
      stream_(StreamSocket(ContextOf(loop))),
      reader_({.payload_bytes = options_.limits.max_payload_bytes,
               .body_bytes = wire::kMaxHelloBodyBytes}),
      session_(session),
      stall_watch_(options_.limits) {
  if (options_.counters == nullptr) options_.counters = std::make_shared<TrafficCounters>();
  if (options_.tls_failures == nullptr) {
    options_.tls_failures = std::make_shared<HandshakeFailures>();
  }
}

std::shared_ptr<SocketConnection> SocketConnection::Accepting(EventLoop& loop, Options options,
                                                              std::string address,
                                                              std::string own_name,
                                                              HelloHook on_hello,
                                                              ClosedHook on_closed) {
  const wire::VersionRange versions = options.versions;
  auto connection = std::shared_ptr<SocketConnection>(new SocketConnection(
      loop, std::move(options), std::move(address), wire::Session::Accepting(versions)));
  connection->own_name_ = std::move(own_name);
  connection->on_hello_ = std::move(on_hello);
  connection->on_closed_ = std::move(on_closed);
  return connection;
}

std::shared_ptr<SocketConnection> SocketConnection::Dialing(
    EventLoop& loop, Options options, std::string address, const wire::Hello& hello,
    std::shared_ptr<ConnectionHandler> handler) {
  auto connection = std::shared_ptr<SocketConnection>(new SocketConnection(
      loop, std::move(options), std::move(address),
      wire::Session::Dialing(hello.role, {.min = hello.min_version, .max = hello.max_version})));
  connection->handler_ = std::move(handler);
  connection->Queue(0, hello, {}, nullptr);
  return connection;
}

std::shared_ptr<SocketConnection> SocketConnection::Self() {
  return std::static_pointer_cast<SocketConnection>(shared_from_this());
}

void SocketConnection::Start(StreamSocket socket, const TlsContext* tls,
                             const std::string& server_name) {
  if (closed_) return;
  error_code ignored;
  (void)socket.non_blocking(true, ignored);
  if (tls == nullptr) {
    stream_ = Stream(std::move(socket));
  } else if (tls->ready()) {
    stream_ = Stream(std::move(socket), *tls, server_name);
  } else {
    options_.tls_failures->Count(HandshakeFailure::kNotReady);
    return Close(Status(Code::kUnavailable, "this side has no certificate yet; try again later"));
  }
  handshake_timer_ = loop_.After(options_.handshake_deadline, [this] {
    if (!ready_) options_.tls_failures->Count(HandshakeFailure::kTimeout);
    Close(Status(Code::kDeadlineExceeded,
                 !ready_     ? "TLS with " + peer_.address + ": the handshake took too long"
                 : on_hello_ ? "no Hello came in time"
                             : "Hello was not answered in time"));
  });
  stall_timer_ = PeriodicTimer(loop_, stall_watch_.interval(), [this] { LookForStalls(); });
  if (tls == nullptr) return BeginHello();
  // What follows the last record may have to stay in the socket.
  if (options_.bulk) stream_.tls()->ReadAhead(false);
  stream_.AsyncHandshake(
      [self = Self()](const HandshakeError* failed) { self->OnTlsHandshake(failed); });
}

void SocketConnection::OnTlsHandshake(const HandshakeError* failed) {
  if (closed_) return;
  if (failed == nullptr) {
    peer_ = stream_.Peer(std::move(peer_.address));
    return BeginHello();
  }
  options_.tls_failures->Count(failed->failure);
  const bool untrusted = failed->failure == HandshakeFailure::kUntrusted ||
                         failed->failure == HandshakeFailure::kWrongName ||
                         failed->failure == HandshakeFailure::kNoCertificate;
  CloseSocket(Status(untrusted ? Code::kPermissionDenied : Code::kUnavailable,
                     "TLS with " + peer_.address + ": " + failed->message),
              Tell::kNobody);
}

void SocketConnection::BeginHello() {
  ready_ = true;
  if (!queue_.empty()) ScheduleFlush();
  Receive();
}

void SocketConnection::LookForStalls() {
  if (peer_.Expired(SystemClock().UnixSeconds())) {
    return Close(Status(Code::kUnavailable, "the certificate of " + peer_.address +
                                                " has expired; connect again with a fresh one"));
  }
  const auto stalled = stall_watch_.Tick({.bytes_in = bytes_in_,
                                          .bytes_out = bytes_out_,
                                          .mid_frame = reader_.mid_frame(),
                                          .queued = !queue_.empty()});
  if (stalled) Close(*stalled);
}

// --- Receiving --------------------------------------------------------------------------------

// The rest of the sink, and the buffer for the next frame after it.
std::array<asio::mutable_buffer, 2> SocketConnection::Space() {
  const auto space = reader_.Space();
  asked_ = space[0].size() + space[1].size();
  return {asio::buffer(space[0].data(), space[0].size()),
          asio::buffer(space[1].data(), space[1].size())};
}

void SocketConnection::Receive() {
  stream_.async_read_some(Space(), [self = Self()](const error_code& error, std::size_t received) {
    if (self->closed_) return;
    if (error) return self->OnTransportError(error, "receive");
    self->OnReceived(received);
  });
}

// A read that came back full is followed by another at once: asking the event loop in between costs
// as much as the copy of a small sample. What handlers send meanwhile leaves together at the end.
void SocketConnection::OnReceived(std::size_t received) {
  dispatching_ = true;
  HandleReceived(received);
  for (int i = 1; i < kReadsATurn && received == asked_ && takes_more(); ++i) {
    error_code error;
    received = stream_.read_some(Space(), error);
    if (error == asio::error::would_block) break;
    if (error) {
      OnTransportError(error, "receive");
    } else {
      HandleReceived(received);
    }
  }
  dispatching_ = false;
  if (!closed_ && !writing_ && !queue_.empty()) Flush();
  if (takes_more()) Receive();
}

void SocketConnection::HandleReceived(std::size_t received) {
  bytes_in_ += received;
  options_.counters->bytes_in += received;
  reader_.Commit(received);
  HandleFrames();
}

void SocketConnection::HandleFrames() {
  while (!closed_ && !undecided_) {
    auto event = reader_.Next();
    if (!event) return Close(std::move(event).error());
    if (std::holds_alternative<wire::NeedMore>(*event)) break;
    if (const auto* end = std::get_if<wire::PayloadEnd>(&*event)) {
      EndPayload(end->intact);
      continue;
    }
    Status status = HandleFrame(std::get<wire::Frame>(std::move(*event)));
    if (!status.ok()) return Close(std::move(status));
  }
}

Status SocketConnection::HandleFrame(wire::Frame frame) {
  ++options_.counters->frames_in;
  const auto event = session_.OnMessage(frame.message);
  if (!event) {
    const auto* hello = std::get_if<wire::Hello>(&frame.message);
    if (hello == nullptr || session_.open() || !on_hello_) return event.error();
    HandleHello(*hello, event.error());
    return OkStatus();
  }
  switch (*event) {
    case wire::Session::Event::kHello:
      HandleHello(std::get<wire::Hello>(frame.message), OkStatus());
      return OkStatus();
    case wire::Session::Event::kWelcome:
      return HandleWelcome(std::get<wire::Welcome>(frame.message));
    case wire::Session::Event::kRefusal: {
      auto& refusal = std::get<wire::Refusal>(frame.message);
      CloseSocket(Status(refusal.code, "the peer refused: " + std::move(refusal.message)),
                  Tell::kNobody);
      return OkStatus();
    }
    case wire::Session::Event::kMessage:
      break;
  }
  if (wire::CarriesPayload(frame.message)) {
    StartPayload(std::move(frame));
  } else {
    handler_->OnMessage(*this, frame.request_id, std::move(frame.message));
  }
  return OkStatus();
}

void SocketConnection::HandleHello(const wire::Hello& hello, const Status& versions) {
  handshake_timer_.Cancel();
  peer_name_ = hello.name;
  peer_member_ = hello.role == wire::Role::kNode ? hello.member : 0;
  bulk_ = options_.bulk && hello.bulk && hello.role == wire::Role::kSidecar && CanLeaveTls(stream_);
  undecided_ = true;
  on_hello_(*this, hello, versions);
}

void SocketConnection::Admit(std::shared_ptr<ConnectionHandler> handler) {
  if (closed_) return;
  handler_ = std::move(handler);
  if (bulk_ && (reader_.mid_frame() || stream_.tls()->has_pending())) {
    return Close(Status(Code::kInvalidArgument, "bytes followed a Hello that offers bulk"));
  }
  Queue(0, wire::Welcome{.version = session_.version(), .name = own_name_, .bulk = bulk_}, {},
        nullptr);
  if (bulk_) return Flush();  // Goes on when Welcome is on its way.
  if (stream_.is_tls()) stream_.tls()->ReadAhead(true);
  Open();
}

Status SocketConnection::HandleWelcome(const wire::Welcome& welcome) {
  handshake_timer_.Cancel();
  peer_name_ = welcome.name;
  bulk_ = welcome.bulk;
  if (bulk_) {
    if (!options_.bulk || !CanLeaveTls(stream_)) {
      return {Code::kInvalidArgument, "Welcome takes an offer of bulk that was not made"};
    }
    if (!queue_.empty() || reader_.mid_frame() || stream_.tls()->has_pending()) {
      return {Code::kInvalidArgument,
              "a Welcome that takes bulk came too early, or bytes after it"};
    }
    RETURN_IF_ERROR(LeaveForBulk());
  } else if (stream_.is_tls()) {
    stream_.tls()->ReadAhead(true);
  }
  Open();
  return OkStatus();
}

// From the next byte on: plaintext, sealed with keys that only the two ends of this TLS have.
Status SocketConnection::LeaveForBulk() {
  ASSIGN_OR_RETURN(BulkSeals seals, LeaveTls(stream_));
  const bool dialed = !on_hello_;
  queue_.Seal(std::move(dialed ? seals.of_dialer : seals.of_acceptor));
  reader_.ExpectSealed(std::move(dialed ? seals.of_acceptor : seals.of_dialer));
  return OkStatus();
}

void SocketConnection::Open() {
  open_ = true;
  reader_.SetMaxBody(wire::kMaxBodyBytes);
  const bool resume = std::exchange(undecided_, false) && !dispatching_;
  handler_->OnOpen(*this);
  if (resume && !closed_) OnReceived(0);
}

void SocketConnection::StartPayload(wire::Frame frame) {
  const ByteCount length = frame.payload_length;
  PayloadSink sink = handler_->OnPayloadStart(*this, frame.request_id, frame.message, length);
  if (closed_) return;
  pending_ = {.request_id = frame.request_id,
              .message = std::move(frame.message),
              .owner = std::move(sink.owner),
              .refused = sink.destination.empty() && length > 0};
  reader_.SetSink(sink.destination);
}

void SocketConnection::EndPayload(bool intact) {
  PendingPayload payload = std::move(*pending_);
  pending_.reset();
  Status status;
  if (payload.refused) {
    ++options_.counters->refused_payloads;
    status = Status(Code::kCancelled, "the payload was refused");
  } else if (!intact) {
    ++options_.counters->corrupt_payloads;
    status = Status(Code::kDataLoss, "the payload from " + address() + " has a wrong checksum");
  }
  handler_->OnPayload(*this, payload.request_id, std::move(payload.message), std::move(status));
}

// --- Sending ----------------------------------------------------------------------------------

void SocketConnection::Send(std::uint32_t request_id, const wire::Message& message) {
  Send(request_id, message, {}, nullptr);
}

void SocketConnection::Send(std::uint32_t request_id, const wire::Message& message,
                            ByteSpan payload, std::shared_ptr<const void> pin) {
  if (closed_ || closing_when_sent_) return;
  CHECK(open_);
  if (wire::VersionOf(message) <= session_.version())
    return Queue(request_id, message, payload, std::move(pin));
  if (const auto older = wire::ForOlder(message, session_.version()))
    Queue(request_id, *older, payload, std::move(pin));
}

void SocketConnection::Queue(std::uint32_t request_id, const wire::Message& message,
                             ByteSpan payload, std::shared_ptr<const void> pin) {
  Status queued = queue_.Push(request_id, message, payload, std::move(pin));
  if (!queued.ok()) {
    ++options_.counters->unsendable_messages;
    return Close(std::move(queued));
  }
  ++options_.counters->frames_out;
  const ConnectionLimits& limits = options_.limits;
  if (queue_.bytes_beside_largest() > limits.max_queued_bytes ||
      queue_.frames() > limits.max_queued_frames) {
    return Close(Status(Code::kResourceExhausted,
                        "the peer reads too slowly: " + std::to_string(queue_.frames()) +
                            " frames of " + FormatBytes(queue_.bytes()) + " wait for it"));
  }
  ScheduleFlush();
}

// After the callback that is running, so that all it sends leaves together.
void SocketConnection::ScheduleFlush() {
  if (dispatching_ || writing_ || flush_scheduled_ || !ready_) return;
  flush_scheduled_ = true;
  asio::post(ContextOf(loop_), [self = Self()] {
    self->flush_scheduled_ = false;
    if (!self->closed_ && !self->writing_ && !self->queue_.empty()) self->Flush();
  });
}

// The next pieces of the queue, which stay where they are until they are consumed.
SocketConnection::Gathered SocketConnection::Gather() {
  std::array<ByteSpan, std::tuple_size_v<decltype(gathered_)>> pieces;
  const std::size_t count = queue_.Peek(pieces);
  offered_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    gathered_[i] = asio::buffer(pieces[i].data(), pieces[i].size());
    offered_ += pieces[i].size();
  }
  return {gathered_.data(), gathered_.data() + count};
}

// Writes what the socket takes at once, and the rest when it takes more.
void SocketConnection::Flush() {
  std::size_t written = 0;
  do {
    error_code error;
    written = stream_.write_some(Gather(), error);
    if (error == asio::error::would_block) {
      written = 0;
    } else if (error) {
      return OnTransportError(error, "send");
    }
    OnWritten(written);
  } while (!queue_.empty() && written == offered_);
  if (queue_.empty()) return OnAllWritten();
  WriteWhenPossible();
}

void SocketConnection::WriteWhenPossible() {
  writing_ = true;
  stream_.async_write_some(Gather(), [self = Self()](const error_code& error, std::size_t written) {
    if (self->closed_) return;
    if (error) return self->OnTransportError(error, "send");
    self->writing_ = false;
    self->OnWritten(written);
    if (self->queue_.empty()) return self->OnAllWritten();
    self->WriteWhenPossible();
  });
}

void SocketConnection::OnWritten(std::size_t written) {
  bytes_out_ += written;
  options_.counters->bytes_out += written;
  queue_.Consume(written);
}

void SocketConnection::OnAllWritten() {
  if (bulk_ && undecided_) {  // Welcome was the last of TLS.
    Status status = LeaveForBulk();
    if (!status.ok()) return Close(std::move(status));
    Open();
  }
  if (closing_when_sent_) Close(OkStatus());
}

// --- Closing ----------------------------------------------------------------------------------

void SocketConnection::CloseWhenSent() {
  closing_when_sent_ = true;
  if (queue_.empty() || !ready_) Close(OkStatus());
}

void SocketConnection::Close(Status status) {
  CloseSocket(std::move(status), Tell::kPeer);
}

void SocketConnection::OnTransportError(const error_code& error, const char* doing) {
  if (error != asio::error::eof) {
    Status status = error.category() == boost::system::system_category()
                        ? ErrnoStatus(error.value(), std::string(doing) + ", peer " + address())
                        : Status(Code::kUnavailable, std::string(doing) + ", peer " + address() +
                                                         ": TLS: " + error.message());
    return CloseSocket(std::move(status), Tell::kNobody);
  }
  Status status;
  if (!session_.open()) {
    status = Status(Code::kUnavailable, address() + " closed during the handshake");
  } else if (reader_.mid_frame()) {
    status = Status(Code::kUnavailable, address() + " closed in the middle of a frame");
  }
  CloseSocket(std::move(status), Tell::kNobody);
}

void SocketConnection::CloseSocket(Status status, Tell tell) {
  if (closed_) return;
  closed_ = true;
  handshake_timer_.Cancel();
  stall_timer_.Cancel();
  if (tell == Tell::kPeer && !status.ok()) SayRefusal(status);
  error_code ignored;
  (void)stream_.socket().shutdown(StreamSocket::shutdown_both, ignored);
  stream_.Close();
  // Posted, so that no handler is called from within its own call to Send or Close.
  asio::post(ContextOf(loop_),
             [self = Self(), status = std::move(status)] { self->Finish(status); });
}

// Frames are written whole or in order, so a Refusal may come only between two of them.
void SocketConnection::SayRefusal(const Status& status) {
  if (!ready_ || writing_ || !queue_.at_boundary()) return;
  queue_.Clear();
  const wire::Refusal refusal{.code = status.code(), .message = status.message()};
  if (!queue_.Push(0, refusal, {}, nullptr).ok()) return;
  error_code ignored;
  stream_.write_some(Gather(), ignored);
}

void SocketConnection::Finish(const Status& status) {
  queue_.Clear();
  ++options_.counters->closed.at(static_cast<std::size_t>(status.code()));
  if (const auto handler = std::exchange(handler_, nullptr)) handler->OnClosed(*this, status);
  pending_.reset();
  if (const auto hook = std::exchange(on_closed_, nullptr)) hook(*this);
}

}  // namespace optcache::net
