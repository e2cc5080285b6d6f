#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "net/asio.h"
#include "net/internal/socket_bio.h"
#include "net/tls.h"

struct ssl_st;   // SSL
struct x509_st;  // X509

namespace optcache::net {

// Why a handshake came to nothing.
struct HandshakeError {
  HandshakeFailure failure = HandshakeFailure::kGone;
  std::string message;
};

// TLS over a non-blocking socket that somebody else owns and keeps open as long as this is used.
// Each call does what can be done now. Not thread-safe: a value with one owner.
class TlsSocket {
 public:
  // What an operation waits for before it can go on.
  enum class Want { kNothing, kReadable, kWritable };

  // `tls` is ready(). `server_name`: whom a client wants to speak to.
  TlsSocket(int fd, const TlsContext& tls, const std::string& server_name);
  TlsSocket(TlsSocket&&) noexcept;
  TlsSocket& operator=(TlsSocket&&) noexcept;
  ~TlsSocket();

  struct Progress {
    Want want = Want::kNothing;
    std::size_t bytes = 0;  // read or written
    error_code error;       // eof: the peer has ended its side
  };

  // Until it wants nothing: `error` is null if the peer has proven itself.
  struct Handshaken {
    Want want = Want::kNothing;
    std::unique_ptr<HandshakeError> error;
  };
  Handshaken Handshake();

  // Fills as much of `space` as has arrived; wants only if that is nothing.
  Progress Read(std::span<const asio::mutable_buffer> space);
  // Takes as many bytes from the front of `data` as the socket does; wants only if that is none.
  // Offer what is left again, and nothing else before.
  Progress Write(std::span<const asio::const_buffer> data);
  // Says that this side has ended, as far as the socket takes it now.
  void Shutdown();

  // Bytes have arrived that Read has not given yet: the socket need not become readable for them.
  bool has_pending() const;
  // Is something to be read, or has the peer gone? Takes nothing.
  Progress Peek();

  // Of the certificate that the peer showed and that is good; none without one.
  std::vector<std::string> PeerDnsNames() const;
  double PeerExpiry() const;  // Unix seconds; 0 without one

  // Whether a Read may take more from the socket than the record that it needs; it may at first.
  void ReadAhead(bool allowed) { bio_->ReadAhead(allowed); }
  bool is_tls13() const;
  // Fills `key` with bytes that only the two ends know and that hang on `label` (RFC 8446, 7.5).
  bool ExportKey(std::string_view label, MutableByteSpan key) const;

 private:
  const x509_st* Peer() const;
  Progress Fail(int result) const;
  Progress Flush();

  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  std::unique_ptr<SocketBio> bio_;
  std::unique_ptr<ssl_st, Free> ssl_;  // uses bio_
  std::size_t held_ = 0;  // bytes at the front of a Write that are encrypted and not all sent
  // What ended the reading, which OpenSSL tells only once.
  std::optional<error_code> failed_;
};

}  // namespace optcache::net
