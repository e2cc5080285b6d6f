#include "handoff/socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace optcache::handoff {
namespace {

constexpr int kBacklog = 128;
constexpr mode_t kSocketMode = 0666;
constexpr std::int64_t kMicrosecondsPerSecond = 1'000'000;

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Error(Code::kInvalidArgument, "the socket path \"" + path + "\" has " +
                                             std::to_string(path.size()) + " bytes: use 1 to " +
                                             std::to_string(sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<UniqueFd> MakeSocket(int flags) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd.valid()) return Error(ErrnoStatus(errno, "make a Unix socket"));
  return fd;
}

const sockaddr* Generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Makes way at `path` if what lies there is a socket without a listener.
Status RemoveDead(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? OkStatus() : ErrnoStatus(errno, "look at " + path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return {Code::kConflict, path + " is no socket: remove it or choose another path"};
  }
  const Result<UniqueFd> other = ConnectTo(path);
  if (other) {
    return {Code::kConflict, "another process serves " + path + ": stop it or choose another path"};
  }
  if (other.error().code() != Code::kUnavailable) return other.error();
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "remove " + path);
  return OkStatus();
}

}  // namespace

Result<UniqueFd> ListenAt(const std::string& path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  RETURN_IF_ERROR(RemoveDead(path));
  ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(SOCK_NONBLOCK));
  if (::bind(fd.get(), Generic(address), sizeof(address)) != 0) {
    return Error(ErrnoStatus(errno, "bind " + path));
  }
  if (::chmod(path.c_str(), kSocketMode) != 0) return Error(ErrnoStatus(errno, "open up " + path));
  if (::listen(fd.get(), kBacklog) != 0) return Error(ErrnoStatus(errno, "listen at " + path));
  return fd;
}

Result<UniqueFd> ConnectTo(const std::string& path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(0));
  if (::connect(fd.get(), Generic(address), sizeof(address)) != 0) {
    return Error(ErrnoStatus(errno, "connect to " + path));
  }
  return fd;
}

Result<UniqueFd> ConnectWithin(const std::string& path, Duration patience) {
  ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(0));
  // It bounds connect too. Zero would be no bound.
  const auto us = std::max<std::int64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(patience).count(), 1);
  const timeval bound{.tv_sec = us / kMicrosecondsPerSecond,
                      .tv_usec = us % kMicrosecondsPerSecond};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound) != 0)
    return Error(ErrnoStatus(errno, "bound the time to connect to " + path));
  if (::connect(fd.get(), Generic(address), sizeof(address)) == 0) return fd;
  if (errno == EAGAIN) return Error(Code::kDeadlineExceeded, path + " accepts no client in time");
  return Error(ErrnoStatus(errno, "connect to " + path));
}

}  // namespace optcache::handoff
