#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace optcache::net {

// A socket that `call`, which is ::bind or ::connect, has taken `path`; invalid: it has not.
inline UniqueFd UnixSocket(const std::string& path, int (*call)(int, const sockaddr*, socklen_t)) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const bool done =
      call(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  return done ? std::move(fd) : UniqueFd();
}

// Listens at `path`, takes no connection and has no room for a further one.
class FullListener {
 public:
  explicit FullListener(const std::string& path) : fd_(UnixSocket(path, ::bind)) {
    EXPECT_EQ(::listen(fd_.get(), 0), 0);
    do {
      waiting_.push_back(UnixSocket(path, ::connect));
    } while (waiting_.back().valid());
  }

 private:
  UniqueFd fd_;
  std::vector<UniqueFd> waiting_;
};

}  // namespace optcache::net
