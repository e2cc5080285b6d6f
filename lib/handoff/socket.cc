#include "handoff/socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace optcache::handoff {
namespace {

constexpr int kBacklog = 128;
constexpr mode_t kSocketMode = 0666;

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

}  // namespace optcache::handoff
