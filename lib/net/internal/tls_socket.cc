#include "net/internal/tls_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "net/internal/tls_impl.h"

namespace optcache::net {
namespace {

// Set while more is to be written at once: the kernel fills its segments.
constexpr int kMoreComes = 1 << 16;

// OpenSSL's own writes to sockets raise SIGPIPE.
int WriteSocket(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  BIO_clear_retry_flags(bio);
  int fd = -1;
  BIO_get_fd(bio, &fd);
  const int more = BIO_test_flags(bio, kMoreComes) != 0 ? MSG_MORE : 0;
  const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL | more);
  if (n >= 0) {
    *written = static_cast<std::size_t>(n);
    return 1;
  }
  if (errno == EAGAIN || errno == EINTR) BIO_set_retry_write(bio);
  return 0;
}

BIO_METHOD* SocketMethod() {
  static BIO_METHOD* const method = [] {
    const BIO_METHOD* const socket = BIO_s_socket();
    BIO_METHOD* const own =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "socket");
    CHECK(own != nullptr);
    BIO_meth_set_write_ex(own, WriteSocket);
    BIO_meth_set_read(own, BIO_meth_get_read(socket));
    BIO_meth_set_ctrl(own, BIO_meth_get_ctrl(socket));
    BIO_meth_set_create(own, BIO_meth_get_create(socket));
    BIO_meth_set_destroy(own, BIO_meth_get_destroy(socket));
    return own;
  }();
  return method;
}

int Length(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, 1U << 30U));
}

}  // namespace

TlsSocket::TlsSocket(int fd, const TlsContext& tls, const std::string& server_name)
    : client_(tls.role() == TlsRole::kClient) {
  CHECK(tls.ready());
  ssl_.reset(SSL_new(tls.impl().ssl.get()));
  CHECK(ssl_ != nullptr);
  BIO* const bio = BIO_new(SocketMethod());
  CHECK(bio != nullptr);
  BIO_set_fd(bio, fd, BIO_NOCLOSE);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (client_) {
    SSL_set_connect_state(ssl_.get());
    CHECK(ExpectServerName(ssl_.get(), server_name));
  } else {
    SSL_set_accept_state(ssl_.get());
  }
}

TlsSocket::TlsSocket(TlsSocket&&) noexcept = default;
TlsSocket& TlsSocket::operator=(TlsSocket&&) noexcept = default;
TlsSocket::~TlsSocket() = default;

void TlsSocket::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsSocket::Handshaken TlsSocket::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) return {};
  const int why = SSL_get_error(ssl_.get(), result);
  if (why == SSL_ERROR_WANT_READ) return {.want = Want::kReadable};
  if (why == SSL_ERROR_WANT_WRITE) return {.want = Want::kWritable};
  const auto code = ERR_get_error();
  const auto verified = SSL_get_verify_result(ssl_.get());
  ERR_clear_error();
  return {.error = std::make_unique<HandshakeError>(
              HandshakeError{.failure = ClassifyHandshake(code, verified),
                             .message = ExplainHandshake(code, verified)})};
}

// What stopped a call that returned `result`.
TlsSocket::Progress TlsSocket::Fail(int result) const {
  const int system_error = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {.want = Want::kReadable};
    case SSL_ERROR_WANT_WRITE:
      return {.want = Want::kWritable};
    case SSL_ERROR_ZERO_RETURN:
      return {.error = asio::error::eof};
    case SSL_ERROR_SYSCALL:
      if (ERR_peek_error() != 0) break;
      return {.error = system_error == 0
                           ? error_code(asio::error::eof)
                           : error_code(system_error, boost::system::system_category())};
    default:
      break;
  }
  const auto code = static_cast<int>(ERR_get_error());
  ERR_clear_error();
  return {.error = error_code(code, asio::error::get_ssl_category())};
}

TlsSocket::Progress TlsSocket::Read(std::span<const asio::mutable_buffer> space) {
  if (failed_) return {.error = *failed_};
  Progress done;
  for (const asio::mutable_buffer& piece : space) {
    std::size_t filled = 0;
    while (filled < piece.size()) {
      ERR_clear_error();
      errno = 0;
      const int n = SSL_read(ssl_.get(), static_cast<std::byte*>(piece.data()) + filled,
                             Length(piece.size() - filled));
      if (n <= 0) {
        Progress stopped = Fail(n);
        if (stopped.error) failed_ = stopped.error;
        return done.bytes > 0 ? done : stopped;
      }
      filled += static_cast<std::size_t>(n);
      done.bytes += static_cast<std::size_t>(n);
    }
  }
  return done;
}

// What goes into the next record, which holds up to 16 KiB: small pieces together, a large one from
// where it lies. `taken` bytes of the first piece are done.
ByteSpan TlsSocket::NextPiece(std::span<const asio::const_buffer> data, std::size_t taken) {
  if (staged_ > 0) return ByteSpan(staging_).first(staged_);
  const asio::const_buffer first = data.front() + taken;
  if (first.size() >= SSL3_RT_MAX_PLAIN_LENGTH || data.size() == 1) {
    return {static_cast<const std::byte*>(first.data()), first.size()};
  }
  staging_.resize(SSL3_RT_MAX_PLAIN_LENGTH);
  staged_ = asio::buffer_copy(asio::buffer(staging_), first);
  staged_ += asio::buffer_copy(asio::buffer(staging_) + staged_, data.subspan(1));
  return ByteSpan(staging_).first(staged_);
}

TlsSocket::Progress TlsSocket::Write(std::span<const asio::const_buffer> data) {
  Progress done;
  std::size_t taken = 0;  // of the first piece
  std::size_t left = asio::buffer_size(data);
  BIO* const bio = SSL_get_wbio(ssl_.get());
  while (!data.empty()) {
    const ByteSpan piece = NextPiece(data, taken);
    const bool more = left > std::min<std::size_t>(piece.size(), SSL3_RT_MAX_PLAIN_LENGTH);
    BIO_clear_flags(bio, kMoreComes);
    if (more) BIO_set_flags(bio, kMoreComes);
    ERR_clear_error();
    errno = 0;
    const int n = SSL_write(ssl_.get(), piece.data(), Length(piece.size()));
    // What stopped it shows again at the next call.
    if (n <= 0) return done.bytes > 0 ? done : Fail(n);
    staged_ = 0;
    left -= static_cast<std::size_t>(n);
    done.bytes += static_cast<std::size_t>(n);
    taken += static_cast<std::size_t>(n);
    while (!data.empty() && taken >= data.front().size()) {
      taken -= data.front().size();
      data = data.subspan(1);
    }
  }
  return done;
}

TlsSocket::Want TlsSocket::Shutdown() {
  if (SSL_is_init_finished(ssl_.get()) == 0) return Want::kNothing;
  ERR_clear_error();
  const Progress progress = Fail(SSL_shutdown(ssl_.get()));
  return progress.want;
}

bool TlsSocket::has_pending() const {
  return failed_.has_value() || SSL_has_pending(ssl_.get()) == 1;
}

TlsSocket::Progress TlsSocket::Peek() {
  if (failed_) return {.error = *failed_};
  char byte = 0;
  ERR_clear_error();
  errno = 0;
  const int n = SSL_peek(ssl_.get(), &byte, 1);
  return n > 0 ? Progress{.bytes = 1} : Fail(n);
}

void TlsSocket::ReadAhead(bool allowed) {
  SSL_set_read_ahead(ssl_.get(), allowed ? 1 : 0);
}

bool TlsSocket::is_tls13() const {
  return SSL_version(ssl_.get()) == TLS1_3_VERSION;
}

bool TlsSocket::ExportKey(std::string_view label, MutableByteSpan key) const {
  ERR_clear_error();
  return SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(key.data()),
                                    key.size(), label.data(), label.size(), nullptr, 0, 0) == 1;
}

std::vector<std::string> TlsSocket::PeerDnsNames() const {
  const X509* const peer = SSL_get0_peer_certificate(ssl_.get());
  if (peer == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return {};
  auto* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(peer, NID_subject_alt_name, nullptr, nullptr));
  std::vector<std::string> result;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS) continue;
    const auto* const text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    std::string lower(text, static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    result.push_back(std::move(lower));
  }
  GENERAL_NAMES_free(names);
  return result;
}

}  // namespace optcache::net
