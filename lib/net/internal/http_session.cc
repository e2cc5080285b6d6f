// Serves one client's connection: requests in, one after the other, and answers out.
//
//   AwaitRequest ─► ReadRequest ─► Handle        or, where heads are checked first:
//   ReadRequest ─► OnHead ─► OnRuling ─► ReadBody, or ReadPiece and SinkPiece in turn ─► Handle
//   Respond, Fail ─► Write ─► ReadSource, WriteFrom in turn ─► OnWritten ─► AwaitRequest or Linger
//
// The idea: `phase_` says what the session waits for, and one timer is its deadline (Enter). An
// operation holds the session alive and, when it ends, does nothing if the phase is another by
// then. So an answer, the deadline and the end of the client may come in any order.
//
// Invariants: a handler's answer names its turn, and only the first one counts. A body with a sink
// or a source goes by pieces of 256 KiB, and jobs that block go to `blocking`, where the server has
// it; other bodies have a limit. A session leaves the server's table by a post, since the caller of
// Close may be one of its own methods.

#include "net/internal/http_session.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "base/check.h"
#include "base/log.h"
#include "net/internal/http_exchange.h"

namespace optcache::net {
namespace {

namespace http = boost::beast::http;

// How long a client that was answered an error may go on sending before it is cut.
constexpr Duration kLingerDeadline = std::chrono::seconds(2);
constexpr std::size_t kDiscardStep = 64U << 10U;
constexpr std::size_t kPieceBytes = 256U << 10U;
// How often a client that takes its answer slowly is looked at within stall_deadline.
constexpr int kLooks = 4;
constexpr std::string_view kUseHttps =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    "this port speaks HTTPS\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// The status for what the parser did not like; 0: the client has gone, nobody to tell.
int StatusOf(const error_code& error) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  return error.category() == http::make_error_code(http::error::bad_version).category() ? 400 : 0;
}

Stream MakeStream(StreamSocket socket, const TlsContext* tls) {
  return tls == nullptr ? Stream(std::move(socket)) : Stream(std::move(socket), *tls);
}

HttpRequest HeadOf(const http::request_header<>& message) {
  HttpRequest request{.method = std::string(message.method_string()),
                      .url = std::string(message.target())};
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  return request;
}

}  // namespace

HttpSession::HttpSession(std::shared_ptr<HttpServerState> state, StreamSocket socket,
                         std::string address)
    : state_(std::move(state)),
      stream_(MakeStream(std::move(socket), state_->options.tls.get())),
      peer_({.address = std::move(address)}),
      peer_source_(SourceOf(peer_.address)) {}

void HttpSession::Start() {
  number_ = ++state_->accepted;
  state_->sessions.emplace(number_, shared_from_this());
  state_->by_source.Add(peer_source_, number_);
  if (state_->options.stall_deadline) {
    // Else the kernel ends the connection of a client that has no room for half a minute.
    const int none = 0;
    ::setsockopt(stream_.socket().native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &none,
                 sizeof(none));
  }
  if (!stream_.is_tls()) return AwaitRequest();
  Enter(Phase::kHandshaking, state_->options.handshake_deadline);
  handshake_ = wait_;
  state_->handshakes.Enter(peer_source_, handshake_, [this] { Handshake(); });
}

// Its turn has come, and it is still there: who goes leaves the gate. The time that it waited does
// not count: neither side could do anything then.
void HttpSession::Handshake() {
  Enter(Phase::kHandshaking, state_->options.handshake_deadline);
  stream_.AsyncHandshake([self = shared_from_this()](const HandshakeError* error) {
    if (self->phase_ == Phase::kHandshaking) self->OnHandshake(error);
  });
}

void HttpSession::OnHandshake(const HandshakeError* error) {
  if (error == nullptr) {
    peer_ = stream_.Peer(std::move(peer_.address));
    return AwaitRequest();
  }
  state_->handshake_failures.Count(error->failure);
  Log(LogLevel::kDebug, "TLS handshake failed",
      {{"server", state_->options.label},
       {"peer", peer_.address},
       {"reason", HandshakeFailureName(error->failure)},
       {"error", error->message}});
  if (error->failure != HandshakeFailure::kNotTls) return Close();
  ::send(stream_.socket().native_handle(), kUseHttps.data(), kUseHttps.size(),
         MSG_DONTWAIT | MSG_NOSIGNAL);
  Linger();
}

void HttpSession::Close() {
  if (phase_ == Phase::kClosed) return;
  SetPhase(Phase::kClosed);
  state_->by_source.Remove(peer_source_, number_);
  state_->handshakes.Leave(peer_source_, handshake_);
  deadline_.Cancel();
  stream_.Close();
  // Posted: the caller may be a method of this session, and the handler's responder may still die.
  state_->loop.Post([self = shared_from_this()] {
    HttpServerState& state = *self->state_;
    state.sessions.erase(self->number_);
    if (state.sessions.empty() && state.on_stopped) std::exchange(state.on_stopped, nullptr)();
  });
}

void HttpSession::CloseIfIdle() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kHandshaking) Close();
}

// A request or a handshake that has begun keeps the place of the wait for it.
void HttpSession::SetPhase(Phase phase) {
  phase_ = phase;
  if (phase == Phase::kIdle || phase == Phase::kLingering || phase == Phase::kClosed) {
    hold_.reset();
    sink_.reset();
    if (answer_) answer_->DropSource();
  }
  const bool goes_on = phase == Phase::kReading || phase == Phase::kHandshaking;
  if (goes_on && wait_ != 0) return;
  state_->waiting.erase(wait_);
  state_->waiting_by_source.Remove(peer_source_, std::exchange(wait_, 0));
  if (phase != Phase::kIdle && phase != Phase::kLingering && !goes_on) return;
  wait_ = ++state_->waits;
  state_->waiting.emplace(wait_, this);
  state_->waiting_by_source.Add(peer_source_, wait_);
}

void HttpSession::Enter(Phase phase, Duration deadline) {
  SetPhase(phase);
  deadline_ = state_->loop.After(deadline, [this] { OnDeadline(); });
}

void HttpSession::OnDeadline() {
  if (phase_ == Phase::kHandshaking) {
    state_->handshake_failures.Count(HandshakeFailure::kTimeout);
  }
  if (phase_ == Phase::kReading || phase_ == Phase::kReadingBody) {
    error_code ignored;
    (void)stream_.socket().cancel(ignored);
    return Fail(408, "the request did not arrive in time");
  }
  if (phase_ == Phase::kChecking) return Fail(503, "no decision in time");
  if (phase_ == Phase::kHandling) {
    return Respond(turn_, OwnAnswer(503, "no answer in time"));
  }
  if (phase_ == Phase::kHandshaking || !StillTakes()) return Close();
  deadline_ = state_->loop.After(TimeToNextLook(), [this] { OnDeadline(); });
}

// At a client that has bytes of its answer still to take.
Duration HttpSession::TimeToNextLook() const {
  const std::optional<Duration>& stall = state_->options.stall_deadline;
  DCHECK(stall.has_value());  // else no client is looked at
  return *stall / kLooks;
}

// What the kernel has of an answer falls while the client takes it.
bool HttpSession::StillTakes() {
  const std::optional<Duration>& stall = state_->options.stall_deadline;
  const ByteCount untaken = stall ? stream_.Unacknowledged() : 0;
  if (untaken == 0) return false;
  const MonotonicTime now = SystemClock().Now();
  if (std::exchange(untaken_, untaken) != untaken) taken_at_ = now;
  return now - taken_at_ < *stall;
}

void HttpSession::AwaitRequest() {
  if (buffer_.size() > 0) return ReadRequest();
  Enter(Phase::kIdle, state_->options.idle_deadline);
  stream_.AsyncWaitReadable([self = shared_from_this()](const error_code& error) {
    if (!error && self->phase_ == Phase::kIdle) self->ReadRequest();
  });
}

void HttpSession::ReadRequest() {
  if (PeerExpired()) return Close();
  Enter(Phase::kReading, state_->options.request_deadline);
  pieces_.reset();
  parser_.emplace();
  parser_->header_limit(state_->options.max_header_bytes);
  const HttpServerOptions& options = state_->options;
  parser_->body_limit(peer_.dns_names.empty()
                          ? options.max_body_bytes_unproven.value_or(options.max_body_bytes)
                          : options.max_body_bytes);
  if (options.check_head) {
    return http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& error, std::size_t) {
          if (self->phase_ == Phase::kReading) self->OnHead(error);
        });
  }
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     if (self->phase_ == Phase::kReading) self->OnRead(error);
                   });
}

// Who has a body to send is asked about before it is read.
void HttpSession::OnHead(const error_code& error) {
  if (error || parser_->is_done()) return OnRead(error);
  Enter(Phase::kChecking, state_->options.response_deadline);
  HttpRequest head = HeadOf(parser_->get());
  head.peer = peer_;
  state_->options.check_head(head, [self = weak_from_this(), turn = turn_](HttpHeadRuling ruling) {
    const auto session = self.lock();
    if (session == nullptr) return;
    if (session->phase_ == Phase::kChecking && session->turn_ == turn) {
      session->OnRuling(std::move(ruling));
    }
  });
}

void HttpSession::OnRuling(HttpHeadRuling ruling) {
  if (ruling.refusal) {
    keep_alive_ = false;
    head_ = parser_->get().method() == http::verb::head;
    return Write(*std::move(ruling.refusal));
  }
  hold_ = std::move(ruling.hold);
  sink_ = std::move(ruling.sink);
  const ByteCount length = parser_->content_length().value_or(state_->options.max_body_bytes);
  Enter(Phase::kReadingBody,
        state_->options.request_deadline + (sink_ != nullptr ? TimeFor(length) : Duration::zero()));
  const auto expects = parser_->get()[http::field::expect];
  if (boost::beast::iequals(expects, "100-continue")) return Continue();
  ReadBody();
}

void HttpSession::Continue() {
  asio::async_write(stream_, asio::buffer(kContinue),
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      if (self->phase_ != Phase::kReadingBody) return;
                      if (error) return self->Close();
                      self->ReadBody();
                    });
}

void HttpSession::ReadBody() {
  if (sink_ != nullptr) {
    pieces_.emplace(std::move(*parser_));
    return ReadPiece();
  }
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     if (self->phase_ == Phase::kReadingBody) self->OnRead(error);
                   });
}

void HttpSession::ReadPiece() {
  piece_.resize(kPieceBytes);
  auto& body = pieces_->get().body();
  body.data = piece_.data();
  body.size = piece_.size();
  body.more = true;
  http::async_read(stream_, buffer_, *pieces_,
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     if (self->phase_ != Phase::kReadingBody) return;
                     if (error && error != http::error::need_buffer) return self->OnRead(error);
                     self->SinkPiece();
                   });
}

void HttpSession::SinkPiece() {
  piece_.resize(piece_.size() - pieces_->get().body().size);
  // Shared with a thread, and may outlive the session.
  const auto piece = std::make_shared<const std::string>(std::exchange(piece_, {}));
  const auto written = std::make_shared<Status>();
  Block(
      Phase::kReadingBody, [sink = sink_, piece, written] { *written = sink->Write(*piece); },
      [this, written] {
        if (!written->ok()) return Fail(503, written->message());
        if (pieces_->is_done()) return Handle();
        ReadPiece();
      });
}

Duration HttpSession::TimeFor(ByteCount bytes) const {
  return std::chrono::seconds(bytes / state_->options.slowest);
}

void HttpSession::Block(Phase phase, std::function<void()> job, std::function<void()> end) {
  auto guarded = [self = shared_from_this(), phase, end = std::move(end)] {
    if (self->phase_ == phase) end();
  };
  if (!state_->options.blocking) {
    job();
    return guarded();
  }
  const Status begun = state_->options.blocking(std::move(job), std::move(guarded));
  if (begun.ok()) return;
  if (phase == Phase::kReadingBody) return Fail(503, begun.message());
  Close();
}

void HttpSession::OnRead(const error_code& error) {
  if (!error) return Handle();
  const int status = StatusOf(error);
  if (status == 0) return Close();
  Fail(status, error.message());
}

void HttpSession::Handle() {
  Enter(Phase::kHandling, state_->options.response_deadline);
  ++turn_;
  const http::request_header<>& head = pieces_ ? pieces_->get().base() : parser_->get().base();
  keep_alive_ = pieces_ ? pieces_->keep_alive() : parser_->keep_alive();
  head_ = head.method() == http::verb::head;
  version_ = head.version();
  HttpRequest request = HeadOf(head);
  if (!pieces_) request.body = std::move(parser_->get().body());
  request.sink = std::move(sink_);
  request.peer = peer_;
  const HttpResponder responder(std::make_shared<HttpResponder::Exchange>(weak_from_this(), turn_));
  const std::uint64_t turn = turn_;
  state_->handler(std::move(request), responder);
  if (Awaits(turn)) WatchClient();
}

// While the handler thinks (a long poll), notices that the client has gone.
void HttpSession::WatchClient() {
  stream_.AsyncWaitReadable([self = shared_from_this(), turn = turn_](const error_code& error) {
    if (error || !self->Awaits(turn)) return;
    switch (self->stream_.Peek()) {
      case Stream::Arrival::kNothing:
        return self->WatchClient();
      case Stream::Arrival::kBytes:  // Its next request, which waits its turn.
        return;
      case Stream::Arrival::kEnd:
        return self->Close();
    }
  });
}

void HttpSession::Respond(std::uint64_t turn, HttpResponse response) {
  if (!Awaits(turn)) return;
  error_code ignored;
  (void)stream_.socket().cancel(ignored);  // WatchClient
  Write(std::move(response));
}

void HttpSession::Fail(int status, std::string why) {
  keep_alive_ = false;
  head_ = false;
  Write(OwnAnswer(status, std::move(why)));
}

HttpResponse HttpSession::OwnAnswer(int status, std::string why) const {
  const auto& own_answer = state_->options.own_answer;
  return own_answer ? own_answer(status, std::move(why))
                    : HttpResponse::Text(status, std::move(why) + "\n");
}

void HttpSession::Write(HttpResponse response) {
  ++state_->responses[response.status];
  Enter(Phase::kWriting, state_->options.write_deadline);
  if (state_->on_stopped || PeerExpired()) keep_alive_ = false;
  answer_.emplace(std::move(response), HttpAnswer::Request{
                                           .head = head_,
                                           .version = version_,
                                           .keep_alive = keep_alive_,
                                       });
  time_left_ = state_->options.write_deadline + TimeFor(answer_->unsent());
  http::async_write(stream_, answer_->message(),
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      if (self->phase_ != Phase::kWriting) return;
                      if (error) return self->Close();
                      self->ReadSource();
                    });
}

void HttpSession::ReadSource() {
  if (answer_->unsent() == 0) return OnWritten();
  Enter(Phase::kWriting, state_->options.response_deadline);
  const auto piece = std::make_shared<Result<std::string>>(Error(Code::kInternal, "not read"));
  Block(
      Phase::kWriting,
      [source = answer_->source(), piece,
       most = std::min<ByteCount>(answer_->unsent(), kPieceBytes)] { *piece = source->Read(most); },
      [this, piece] { WritePiece(*piece); });
}

// The client's time runs while it is offered bytes, and not while the source is read. A client that
// has stopped is closed, however much time its whole answer has: what it holds is wanted by others.
void HttpSession::WritePiece(const Result<std::string>& piece) {
  if (!piece || piece->empty() || piece->size() > answer_->unsent()) return Close();
  piece_ = *piece;
  WriteFrom(0);
}

void HttpSession::WriteFrom(std::size_t begin) {
  const HttpServerOptions& options = state_->options;
  Enter(Phase::kWriting,
        options.stall_deadline ? TimeToNextLook() : std::min(options.write_deadline, time_left_));
  stream_.async_write_some(asio::buffer(piece_) + begin,
                           [self = shared_from_this(), begin, offered = SystemClock().Now()](
                               const error_code& error, std::size_t bytes) {
                             if (self->phase_ != Phase::kWriting) return;
                             if (error) return self->Close();
                             self->taken_at_ = SystemClock().Now();
                             self->time_left_ -= self->taken_at_ - offered;
                             self->answer_->OnSent(bytes);
                             const std::size_t end = begin + bytes;
                             if (end < self->piece_.size()) return self->WriteFrom(end);
                             self->ReadSource();
                           });
}

void HttpSession::OnWritten() {
  answer_.reset();
  piece_ = {};
  if (keep_alive_) return AwaitRequest();
  Linger();
}

// Closing while the client still sends would reset the connection, and with it the response on its
// way.
void HttpSession::Linger() {
  Enter(Phase::kLingering, kLingerDeadline);
  stream_.ShutdownSend();
  Discard();
}

void HttpSession::Discard() {
  buffer_.clear();
  stream_.socket().async_read_some(
      buffer_.prepare(kDiscardStep),
      [self = shared_from_this()](const error_code& error, std::size_t) {
        if (self->phase_ != Phase::kLingering) return;
        if (error) return self->Close();
        self->Discard();
      });
}

}  // namespace optcache::net
