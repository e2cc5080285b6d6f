#include "net/internal/socket_bio.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <openssl/bio.h>

#include "base/bytes.h"
#include "base/check.h"

namespace optcache::net {

// What OpenSSL calls.
struct SocketBioMethod {
  static SocketBio& Of(BIO* bio) { return *static_cast<SocketBio*>(BIO_get_data(bio)); }

  static int Read(BIO* bio, char* out, std::size_t size, std::size_t* taken) {
    BIO_clear_retry_flags(bio);
    if (Of(bio).Read(out, size, taken)) return 1;
    if (!Of(bio).ended_ && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    return 0;
  }
  static int Write(BIO* bio, const char* data, std::size_t size, std::size_t* taken) {
    BIO_clear_retry_flags(bio);
    if (!Of(bio).Gather(data, size)) {
      BIO_set_retry_write(bio);
      return 0;
    }
    *taken = size;
    return 1;
  }
  // A flush is the owner's to make.
  // NOLINTNEXTLINE(google-runtime-int): OpenSSL's type
  static long Control(BIO* bio, int command, long /*number*/, void* /*unused*/) {
    if (command == BIO_CTRL_EOF) return Of(bio).ended_ ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* Get() {
    static const BIO_METHOD* const method = [] {
      BIO_METHOD* const own = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "records");
      CHECK(own != nullptr);
      BIO_meth_set_read_ex(own, Read);
      BIO_meth_set_write_ex(own, Write);
      BIO_meth_set_ctrl(own, Control);
      return own;
    }();
    return method;
  }
};

bio_st* SocketBio::MakeBio() {
  BIO* const bio = BIO_new(SocketBioMethod::Get());
  CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

bool SocketBio::Read(char* out, std::size_t size, std::size_t* taken) {
  if (has_unread()) {
    *taken = std::min(size, unread_end_ - unread_begin_);
    std::memcpy(out, unread_.get() + unread_begin_, *taken);
    unread_begin_ += *taken;
    return true;
  }
  if (read_ahead_ && unread_ == nullptr) {
    unread_ = std::make_unique_for_overwrite<std::byte[]>(kReadAheadBytes);
  }
  // What OpenSSL asks for goes straight to it.
  const std::array<iovec, 2> space = {iovec{out, size}, iovec{unread_.get(), kReadAheadBytes}};
  const ssize_t n = ::readv(fd_, space.data(), read_ahead_ ? 2 : 1);
  if (n <= 0) {
    ended_ = n == 0;
    unread_.reset();
    return false;
  }
  *taken = std::min(size, static_cast<std::size_t>(n));
  unread_begin_ = 0;
  unread_end_ = static_cast<std::size_t>(n) - *taken;
  return true;
}

// Has room beyond full() for what OpenSSL says by itself, but not for a peer that asks for new keys
// for ever and reads none of the answers.
bool SocketBio::Gather(const char* data, std::size_t size) {
  if (waiting_.size() >= 2 * kGatheredBytes) return false;
  if (size >= 16_KiB) waiting_.reserve(kGatheredBytes + 1_KiB);  // Seven records' heads and tags.
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  waiting_.insert(waiting_.end(), bytes, bytes + size);
  return true;
}

bool SocketBio::Flush() {
  while (unsent() > 0) {
    const ssize_t n = ::send(fd_, waiting_.data() + sent_, unsent(), MSG_NOSIGNAL);
    if (n < 0) return false;
    sent_ += static_cast<std::size_t>(n);
  }
  waiting_ = {};
  sent_ = 0;
  return true;
}

}  // namespace optcache::net
