#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/clock.h"
#include "base/log_limit.h"
#include "net/asio.h"
#include "net/http_server.h"
#include "net/internal/connections_by_source.h"
#include "net/internal/handshake_gate.h"
#include "net/internal/http_answer.h"
#include "net/internal/stream.h"

namespace optcache::net {

class HttpSession;

// What the sessions of one server share with it.
struct HttpServerState {
  HttpServerState(EventLoop& event_loop, HttpServerOptions server_options, HttpHandler on_request)
      : loop(event_loop),
        options(std::move(server_options)),
        handler(std::move(on_request)),
        handshakes(loop, options.handshakes) {}

  EventLoop& loop;
  HttpServerOptions options;
  HttpHandler handler;
  HandshakeGate handshakes;
  // Kept here until they close, by numbers that rise with time.
  std::unordered_map<std::uint64_t, std::shared_ptr<HttpSession>> sessions;
  std::uint64_t accepted = 0;
  ConnectionsBySource by_source;  // that are open
  // Those that wait for their client's handshake, next request or end, by numbers of their own.
  std::unordered_map<std::uint64_t, HttpSession*> waiting;
  ConnectionsBySource waiting_by_source;
  std::uint64_t waits = 0;
  LogLimit full_log;
  std::uint64_t refused_connections = 0;
  std::map<int, std::uint64_t> responses;  // by status
  HandshakeFailures handshake_failures;
  std::function<void()> on_stopped;  // set: the server stops, each response is the last
};

// One client's connection:
//
//   (handshaking ->) idle -> reading -> handling -> writing -> idle ...      (keep-alive)
//                              |  ^\-> error response -> lingering -> closed
//                              v  |
//                   checking -> reading body                   (a body that is asked about first)
//
// A body that has a sink is read into it by pieces; one that has a source is written so.
//
// Used on the loop's thread only.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(std::shared_ptr<HttpServerState> state, StreamSocket socket, std::string address);

  void Start();
  void Close();
  // Ends the connection if nothing is asked on it.
  void CloseIfIdle();

  // The handler's answer to request number `turn`; ignored if that is answered already.
  void Respond(std::uint64_t turn, HttpResponse response);
  bool Awaits(std::uint64_t turn) const { return phase_ == Phase::kHandling && turn == turn_; }
  HttpResponse OwnAnswer(int status, std::string why) const;

 private:
  enum class Phase {
    kNew,
    kHandshaking,
    kIdle,
    kReading,
    kChecking,
    kReadingBody,
    kHandling,
    kWriting,
    kLingering,
    kClosed
  };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using PieceParser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

  void SetPhase(Phase phase);
  void Handshake();
  void Enter(Phase phase, Duration deadline);
  void OnDeadline();
  void OnHandshake(const HandshakeError* error);
  void AwaitRequest();
  void ReadRequest();
  void OnHead(const error_code& error);
  void OnRuling(HttpHeadRuling ruling);
  void Continue();
  void ReadBody();
  void ReadPiece();
  void SinkPiece();
  void OnRead(const error_code& error);
  void Handle();
  void WatchClient();
  void Fail(int status, std::string why);
  void Write(HttpResponse response);
  void ReadSource();
  void WritePiece(const Result<std::string>& piece);
  void WriteFrom(std::size_t begin);
  bool StillTakes();
  Duration TimeToNextLook() const;
  void OnWritten();
  // The time that this many bytes take at the least.
  Duration TimeFor(ByteCount bytes) const;
  // As HttpServerOptions::blocking; `end` is called while the session is in `phase` alone.
  void Block(Phase phase, std::function<void()> job, std::function<void()> end);
  void Linger();
  void Discard();
  bool PeerExpired() const { return peer_.Expired(SystemClock().UnixSeconds()); }

  std::shared_ptr<HttpServerState> state_;
  Stream stream_;
  PeerInfo peer_;
  std::string peer_source_;
  std::uint64_t number_ = 0;     // its own at state_->sessions
  std::uint64_t handshake_ = 0;  // its number at state_->handshakes
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<PieceParser> pieces_;  // instead of it, for a body that has a sink
  std::optional<HttpAnswer> answer_;   // while it is written
  std::shared_ptr<void> hold_;         // these two as the head's check wants it
  std::shared_ptr<HttpBodySink> sink_;
  Duration time_left_{};  // for the client to take the answer
  std::string piece_;
  ByteCount untaken_ = 0;  // of an answer, when it was looked at
  MonotonicTime taken_at_{};
  Phase phase_ = Phase::kNew;
  std::uint64_t wait_ = 0;  // its place in state_->waiting
  std::uint64_t turn_ = 0;
  bool keep_alive_ = false;  // of the request that is handled
  bool head_ = false;
  unsigned version_ = 11;  // of HTTP, of the request: 10 or 11
  Timer deadline_;
};

}  // namespace optcache::net
