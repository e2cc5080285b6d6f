// Does by OpenSSL what a non-blocking socket allows now, and says what each call waits for.
//
// The idea: OpenSSL would write each record by a system call of its own. So it writes to a
// SocketBio, which gathers records, and Write sends several by one call. A record takes 16 KiB of a
// large piece where it lies, or several small pieces copied together.
//
// Invariants: bytes count as written when their record has left the SocketBio. What is encrypted
// and not sent yet (`held_`) is at the front of what the caller must offer again, and is skipped
// then. An error that ended the reading is kept, since OpenSSL tells it once. The error queue of
// OpenSSL, which is the thread's, is cleared before each call that looks at it.

#include "net/internal/tls_socket.h"

#include <algorithm>
#include <array>
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

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;

int Length(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, 1U << 30U));
}

// What is left of some buffers, a record at a time.
class RecordSource {
 public:
  explicit RecordSource(std::span<const asio::const_buffer> data) : data_(data) {}

  bool empty() const { return data_.empty(); }
  void Skip(std::size_t bytes) {
    taken_ += bytes;
    while (!data_.empty() && taken_ >= data_.front().size()) {
      taken_ -= data_.front().size();
      data_ = data_.subspan(1);
    }
  }
  // Of a large piece where it lies, small ones together in `staging`.
  ByteSpan Next(std::array<std::byte, kRecordBytes>& staging) const {
    const asio::const_buffer first = data_.front() + taken_;
    if (first.size() >= kRecordBytes || data_.size() == 1) {
      return {static_cast<const std::byte*>(first.data()), std::min(first.size(), kRecordBytes)};
    }
    const std::size_t copied = asio::buffer_copy(asio::buffer(staging), first);
    return ByteSpan(staging).first(
        copied + asio::buffer_copy(asio::buffer(staging) + copied, data_.subspan(1)));
  }

 private:
  std::span<const asio::const_buffer> data_;
  std::size_t taken_ = 0;  // of the first piece
};

}  // namespace

TlsSocket::TlsSocket(int fd, const TlsContext& tls, const std::string& server_name)
    : bio_(std::make_unique<SocketBio>(fd)) {
  CHECK(tls.ready());
  ssl_.reset(SSL_new(tls.impl().ssl.get()));
  CHECK(ssl_ != nullptr);
  BIO* const bio = bio_->MakeBio();
  SSL_set_bio(ssl_.get(), bio, bio);
  if (tls.role() == TlsRole::kClient) {
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
  const int why = SSL_get_error(ssl_.get(), result);
  const bool blocked = Flush().want == Want::kWritable;
  if (result == 1 || why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
    if (blocked || why == SSL_ERROR_WANT_WRITE) return {.want = Want::kWritable};
    return {.want = result == 1 ? Want::kNothing : Want::kReadable};
  }
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
        (void)Flush();  // What OpenSSL answers by itself: a change of keys, an alert.
        if (stopped.error) failed_ = stopped.error;
        return done.bytes > 0 ? done : stopped;
      }
      filled += static_cast<std::size_t>(n);
      done.bytes += static_cast<std::size_t>(n);
    }
  }
  return done;
}

TlsSocket::Progress TlsSocket::Flush() {
  if (bio_->Flush()) return {};
  if (errno == EAGAIN || errno == EINTR) return {.want = Want::kWritable};
  return {.error = error_code(errno, boost::system::system_category())};
}

// Encrypts some records, sends them by one call, and so on as long as the socket takes them.
TlsSocket::Progress TlsSocket::Write(std::span<const asio::const_buffer> data) {
  RecordSource rest(data);
  rest.Skip(held_);  // Encrypted already.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled as far as it is used
  std::array<std::byte, kRecordBytes> staging;
  Progress done;
  for (;;) {
    const Progress flushed = Flush();
    // Records are longer than what is in them, so no more of that is left than of them.
    const std::size_t held = std::min(held_, bio_->unsent());
    done.bytes += std::exchange(held_, held) - held;
    if (flushed.want != Want::kNothing || flushed.error) return done.bytes > 0 ? done : flushed;
    if (rest.empty()) return done;
    while (!rest.empty() && !bio_->full()) {
      const ByteSpan record = rest.Next(staging);
      ERR_clear_error();
      errno = 0;
      const int n = SSL_write(ssl_.get(), record.data(), Length(record.size()));
      if (n <= 0) return Fail(n);
      held_ += static_cast<std::size_t>(n);
      rest.Skip(static_cast<std::size_t>(n));
    }
  }
}

void TlsSocket::Shutdown() {
  if (SSL_is_init_finished(ssl_.get()) == 0) return;
  ERR_clear_error();
  (void)Fail(SSL_shutdown(ssl_.get()));
  (void)Flush();
}

bool TlsSocket::has_pending() const {
  return failed_.has_value() || bio_->has_unread() || SSL_has_pending(ssl_.get()) == 1;
}

TlsSocket::Progress TlsSocket::Peek() {
  if (failed_) return {.error = *failed_};
  char byte = 0;
  ERR_clear_error();
  errno = 0;
  const int n = SSL_peek(ssl_.get(), &byte, 1);
  return n > 0 ? Progress{.bytes = 1} : Fail(n);
}

bool TlsSocket::is_tls13() const {
  return SSL_version(ssl_.get()) == TLS1_3_VERSION;
}

bool TlsSocket::ExportKey(std::string_view label, MutableByteSpan key) const {
  ERR_clear_error();
  return SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(key.data()),
                                    key.size(), label.data(), label.size(), nullptr, 0, 0) == 1;
}

const X509* TlsSocket::Peer() const {
  const bool good = SSL_get_verify_result(ssl_.get()) == X509_V_OK;
  return good ? SSL_get0_peer_certificate(ssl_.get()) : nullptr;
}

double TlsSocket::PeerExpiry() const {
  return ExpiryOf(Peer());
}

std::vector<std::string> TlsSocket::PeerDnsNames() const {
  const X509* const peer = Peer();
  if (peer == nullptr) return {};
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
