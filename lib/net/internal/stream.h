#pragma once

// A connected socket, TCP or Unix, plain or TLS, as a stream that Asio and Beast understand. What
// stands on it reads and writes without knowing which.
//
//   stream_ = Stream(std::move(socket), *tls, "optcache-node");  // Stream(std::move(socket)):
//   plain stream_.AsyncHandshake([self](const HandshakeError* failed) { ... });
//
// Plain reads and writes are those of the socket and cost what they cost there.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "net/asio.h"
#include "net/internal/tls_socket.h"
#include "net/peer.h"

namespace optcache::net {

// Used on the loop's thread only. It stays where it is, and lives, while an operation is under way:
// their handlers keep its owner alive. At most one read and one write at a time. Operations end
// early with operation_aborted when socket() is cancelled or closed; handlers never run within the
// call that started them.
class Stream {
 public:
  using executor_type = StreamSocket::executor_type;

  // Plain.
  explicit Stream(StreamSocket socket);
  // TLS in the role of `tls`, which is ready(). A client checks the server's certificate against
  // `server_name`; a server passes nothing.
  Stream(StreamSocket socket, const TlsContext& tls, const std::string& server_name = "");

  // Below TLS: to wait, cancel, close, and ask for addresses.
  StreamSocket& socket() { return socket_; }
  const StreamSocket& socket() const { return socket_; }
  bool is_tls() const { return tls_.has_value(); }
  // Null: plain.
  TlsSocket* tls() { return tls_ ? &*tls_ : nullptr; }
  const TlsSocket* tls() const { return tls_ ? &*tls_ : nullptr; }
  // Goes on in plaintext, without a word to the peer. Between two operations only, and when nothing
  // is pending.
  void LeaveTls() { tls_.reset(); }
  executor_type get_executor() { return socket_.get_executor(); }

  // First of all. `done` gets null when the peer has proven what it has to; a socket that is closed
  // meanwhile is HandshakeFailure::kGone. Without TLS there is nothing to prove.
  void AsyncHandshake(std::function<void(const HandshakeError*)> done);
  // After it: at `address` is who has shown a certificate with these names and this end, if any.
  PeerInfo Peer(std::string address) const;

  // Asio's AsyncReadStream and AsyncWriteStream. A peer that ended its side is asio::error::eof.
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (!tls_) return socket_.async_read_some(buffers, std::forward<Handler>(handler));
    TlsRead(buffers, std::decay_t<Handler>(std::forward<Handler>(handler)), Call::kFirst);
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (!tls_) return socket_.async_write_some(buffers, std::forward<Handler>(handler));
    TlsWrite(buffers, std::decay_t<Handler>(std::forward<Handler>(handler)), Call::kFirst);
  }

  // What can be done at once, on a non-blocking socket; else would_block. A write that would block
  // is offered the same bytes the next time, and perhaps more behind them.
  template <typename Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& error) {
    if (!tls_) return socket_.read_some(buffers, error);
    return Now(tls_->Read(Pieces<asio::mutable_buffer>(buffers)), error);
  }
  template <typename Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& error) {
    if (!tls_) return socket_.write_some(buffers, error);
    return Now(tls_->Write(Pieces<asio::const_buffer>(buffers)), error);
  }

  // Calls `ready` when something has arrived, or the peer has gone, or the socket is closed (then
  // with an error).
  void AsyncWaitReadable(std::function<void(const error_code&)> ready);
  enum class Arrival { kNothing, kBytes, kEnd };
  // What has, without taking it.
  Arrival Peek();

  // How many bytes were sent that the peer's machine has not acknowledged. It acknowledges what its
  // program has not read yet, too, as far as it has room.
  ByteCount Unacknowledged();

  // Says that nothing more comes: TLS's close_notify as far as the socket takes it at once, and the
  // end of this side of the socket.
  void ShutdownSend();
  // Ends all operations.
  void Close();

 private:
  enum class Call { kFirst, kAgain };

  // A buffer sequence as an array; what does not fit is left for the next call.
  template <typename Buffer>
  class Pieces {
   public:
    template <typename Buffers>
    explicit Pieces(const Buffers& buffers) {
      for (auto at = asio::buffer_sequence_begin(buffers);
           at != asio::buffer_sequence_end(buffers) && count_ < pieces_.size(); ++at) {
        const Buffer piece = *at;
        if (piece.size() > 0) pieces_[count_++] = piece;
      }
    }
    operator std::span<const Buffer>() const { return {pieces_.data(), count_}; }

   private:
    std::array<Buffer, 64> pieces_;
    std::size_t count_ = 0;
  };

  static std::size_t Now(const TlsSocket::Progress& progress, error_code& error) {
    error = progress.want == TlsSocket::Want::kNothing ? progress.error : asio::error::would_block;
    return progress.bytes;
  }

  template <typename Buffers, typename Handler>
  void TlsRead(const Buffers& buffers, Handler handler, Call call) {
    Go(tls_->Read(Pieces<asio::mutable_buffer>(buffers)), buffers, std::move(handler), call,
       [](Stream& stream, const Buffers& same, Handler again) {
         stream.TlsRead(same, std::move(again), Call::kAgain);
       });
  }
  template <typename Buffers, typename Handler>
  void TlsWrite(const Buffers& buffers, Handler handler, Call call) {
    Go(tls_->Write(Pieces<asio::const_buffer>(buffers)), buffers, std::move(handler), call,
       [](Stream& stream, const Buffers& same, Handler again) {
         stream.TlsWrite(same, std::move(again), Call::kAgain);
       });
  }

  // The handler if the operation is done, else `again` when the socket is ready for it.
  template <typename Buffers, typename Handler, typename Again>
  void Go(const TlsSocket::Progress& progress, const Buffers& buffers, Handler handler, Call call,
          Again again) {
    if (progress.want == TlsSocket::Want::kNothing) {
      if (call == Call::kAgain) return handler(progress.error, progress.bytes);
      return asio::post(get_executor(), [handler = std::move(handler), progress]() mutable {
        handler(progress.error, progress.bytes);
      });
    }
    socket_.async_wait(WaitFor(progress.want), [this, buffers, handler = std::move(handler),
                                                again](const error_code& error) mutable {
      if (error || !socket_.is_open()) return handler(Ended(error), 0);
      again(*this, buffers, std::move(handler));
    });
  }

  static StreamSocket::wait_type WaitFor(TlsSocket::Want want) {
    return want == TlsSocket::Want::kReadable ? StreamSocket::wait_read : StreamSocket::wait_write;
  }
  // A socket that was closed after it had become ready says so.
  static error_code Ended(const error_code& error) {
    return error ? error : error_code(asio::error::operation_aborted);
  }
  void ContinueHandshake(std::function<void(const HandshakeError*)> done, Call call);

  StreamSocket socket_;
  std::optional<TlsSocket> tls_;
};

}  // namespace optcache::net
