#pragma once

// memcached as the peer of a comparison: starts the program, fills it, and reads from it with a
// client that is as direct as ours: values are received straight into their place.

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"

struct ssl_st;  // SSL

namespace optcache::bench {

// By TLS: files with what the server shows, and the CA that its client trusts, in PEM.
struct MemcachedTls {
  std::string chain_file;
  std::string key_file;
  std::string ca_file;
};

class MemcachedServer {
 public:
  // kNotFound if the program is not installed, or cannot do TLS. Ends with this object.
  static Result<MemcachedServer> Start(const MemcachedTls* tls = nullptr);
  MemcachedServer(MemcachedServer&& other) noexcept;
  MemcachedServer& operator=(MemcachedServer&&) = delete;
  ~MemcachedServer();

  pid_t pid() const { return pid_; }
  int port() const { return port_; }

 private:
  MemcachedServer(pid_t pid, int port) : pid_(pid), port_(port) {}
  pid_t pid_;
  int port_;
};

// One blocking connection. The key of sample n is "k<n>".
class MemcachedClient {
 public:
  static Result<MemcachedClient> Connect(int port, const MemcachedTls* tls = nullptr);

  Status Set(std::uint32_t id, ByteSpan value);
  // One multi-get; value i goes to sinks[i], all of equal size.
  Status Get(const std::vector<std::uint32_t>& ids, const std::vector<MutableByteSpan>& sinks);

 private:
  explicit MemcachedClient(UniqueFd fd) : fd_(std::move(fd)), buffer_(1024) {}
  Status StartTls(const MemcachedTls& tls);
  Status Write(ByteSpan bytes);
  // Into the first span and, where the transport can, the second by the same call; how many bytes.
  Result<std::size_t> Receive(MutableByteSpan first, MutableByteSpan second);
  Status Fill();
  Result<std::string> ReadLine();
  Status ReadInto(MutableByteSpan sink);

  struct FreeSsl {
    void operator()(ssl_st* ssl) const;
  };

  UniqueFd fd_;
  std::unique_ptr<ssl_st, FreeSsl> ssl_;  // null: plaintext
  std::vector<std::byte> buffer_;         // [begin_, end_) has been received and not used
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace optcache::bench
