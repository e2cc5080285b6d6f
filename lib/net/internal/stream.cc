#include "net/internal/stream.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

namespace optcache::net {

// Not in the header: g++ 12 takes the moved socket for uninitialized where it sees all of it.
Stream::Stream(StreamSocket socket) : socket_(std::move(socket)) {}

Stream::Stream(StreamSocket socket, const TlsContext& tls, const std::string& server_name)
    : socket_(std::move(socket)) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  tls_.emplace(socket_.native_handle(), tls, server_name);
}

void Stream::AsyncHandshake(std::function<void(const HandshakeError*)> done) {
  if (tls_) return ContinueHandshake(std::move(done), Call::kFirst);
  asio::post(get_executor(), [done = std::move(done)] { done(nullptr); });
}

void Stream::ContinueHandshake(std::function<void(const HandshakeError*)> done, Call call) {
  TlsSocket::Handshaken step = tls_->Handshake();
  if (step.want == TlsSocket::Want::kNothing) {
    if (call == Call::kAgain) return done(step.error.get());
    return asio::post(get_executor(),
                      [done = std::move(done), error = std::shared_ptr<HandshakeError>(
                                                   std::move(step.error))] { done(error.get()); });
  }
  socket_.async_wait(WaitFor(step.want), [this, done = std::move(done)](const error_code& error) {
    if (!error && socket_.is_open()) return ContinueHandshake(done, Call::kAgain);
    const HandshakeError gone = {.failure = HandshakeFailure::kGone,
                                 .message = Ended(error).message()};
    done(&gone);
  });
}

PeerInfo Stream::Peer(std::string address) const {
  PeerInfo peer{.address = std::move(address)};
  if (!tls_) return peer;
  peer.dns_names = tls_->PeerDnsNames();
  peer.expires_at = tls_->PeerExpiry();
  return peer;
}

void Stream::AsyncWaitReadable(std::function<void(const error_code&)> ready) {
  if (tls_ && tls_->has_pending()) {
    return asio::post(get_executor(), [ready = std::move(ready)] { ready(error_code()); });
  }
  socket_.async_wait(StreamSocket::wait_read, std::move(ready));
}

Stream::Arrival Stream::Peek() {
  if (tls_) {
    const TlsSocket::Progress progress = tls_->Peek();
    if (progress.want != TlsSocket::Want::kNothing) return Arrival::kNothing;
    return progress.error ? Arrival::kEnd : Arrival::kBytes;
  }
  char byte = 0;
  const auto n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Arrival::kNothing;
  return n > 0 ? Arrival::kBytes : Arrival::kEnd;
}

ByteCount Stream::Unacknowledged() {
  int bytes = 0;
  const bool known = ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
  return known ? static_cast<ByteCount>(bytes) : 0;
}

void Stream::ShutdownSend() {
  if (tls_) tls_->Shutdown();
  error_code ignored;
  (void)socket_.shutdown(StreamSocket::shutdown_send, ignored);
}

void Stream::Close() {
  error_code ignored;
  (void)socket_.close(ignored);
}

}  // namespace optcache::net
