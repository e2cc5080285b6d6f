#pragma once

#include <cstddef>
#include <memory>
#include <vector>

struct bio_st;  // BIO

namespace optcache::net {

// The socket under TLS as OpenSSL sees it. OpenSSL reads and writes record by record; here one
// system call carries several. Holds buffers only while they have something in them or bytes keep
// coming. The socket is non-blocking, somebody else's, and stays open as long as this is used. Not
// thread-safe: a value with one owner, which stays where it is.
class SocketBio {
 public:
  explicit SocketBio(int fd) : fd_(fd) {}
  SocketBio(const SocketBio&) = delete;
  SocketBio& operator=(const SocketBio&) = delete;

  // For SSL_set_bio, which owns it; this has to outlive it.
  bio_st* MakeBio();

  // Whether a read may take more from the socket than OpenSSL asks for; it may at first.
  void ReadAhead(bool allowed) { read_ahead_ = allowed; }
  // Bytes that were read ahead: the socket need not become readable for them.
  bool has_unread() const { return unread_begin_ < unread_end_; }

  // What OpenSSL writes waits for Flush, which is worth a call when it is full().
  bool full() const { return waiting_.size() >= kGatheredBytes; }
  std::size_t unsent() const { return waiting_.size() - sent_; }
  // False: the socket did not take all; errno says why.
  bool Flush();

 private:
  friend struct SocketBioMethod;

  // Four records of 16 KiB, and seven.
  static constexpr std::size_t kReadAheadBytes = 64U << 10U;
  static constexpr std::size_t kGatheredBytes = 112U << 10U;

  // False: nothing was read; ended_ or errno says why.
  bool Read(char* out, std::size_t size, std::size_t* taken);
  // False: too much waits already.
  bool Gather(const char* data, std::size_t size);

  int fd_;
  bool read_ahead_ = true;
  bool ended_ = false;                   // the peer has ended its side
  std::unique_ptr<std::byte[]> unread_;  // [unread_begin_, unread_end_)
  std::size_t unread_begin_ = 0;
  std::size_t unread_end_ = 0;
  std::vector<std::byte> waiting_;
  std::size_t sent_ = 0;  // of them
};

}  // namespace optcache::net
