#pragma once

// memcached as the peer of a comparison: starts the program, fills it, and reads from it with a
// client that is as direct as ours: values are received straight into their place.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace optcache::bench {

class MemcachedServer {
 public:
  // kNotFound if the program is not installed. Ends with this object.
  static Result<MemcachedServer> Start();
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
  static Result<MemcachedClient> Connect(int port);

  Status Set(std::uint32_t id, ByteSpan value);
  // One multi-get; value i goes to sinks[i], all of equal size.
  Status Get(const std::vector<std::uint32_t>& ids, const std::vector<MutableByteSpan>& sinks);

 private:
  explicit MemcachedClient(UniqueFd fd) : fd_(std::move(fd)), buffer_(1024) {}
  Status Write(ByteSpan bytes);
  Status Fill();
  Result<std::string> ReadLine();
  Status ReadInto(MutableByteSpan sink);

  UniqueFd fd_;
  std::vector<std::byte> buffer_;  // [begin_, end_) has been received and not used
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace optcache::bench
