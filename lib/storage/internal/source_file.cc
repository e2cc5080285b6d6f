#include "storage/internal/source_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

namespace optcache::storage::internal {

namespace {

// What a file system on a network says while its server is away, or has come back as another one.
// A disk that breaks says EIO, too: that is found out by waiting.
bool MayPass(int error_number) {
  constexpr std::array kPassing = {EIO,       ESTALE,       ENETDOWN,  ENETUNREACH,
                                   EHOSTDOWN, EHOSTUNREACH, EREMOTEIO, ETIMEDOUT};
  return std::ranges::find(kPassing, error_number) != kPassing.end();
}

}  // namespace

Status FileError(int error_number, const std::string& what) {
  Status status = ErrnoStatus(error_number, what);
  if (MayPass(error_number)) return {Code::kUnavailable, status.message()};
  if (error_number != EACCES && error_number != EPERM) return status;
  return {
      Code::kPermissionDenied,
      fmt::format("{}: it is read as user {} and group {}: let these read it (chmod o+r, and o+x "
                  "for the folders above), or run as a user who may",
                  status.message(), ::geteuid(), ::getegid())};
}

Result<std::string> RealPath(const std::string& path) {
  struct Free {
    void operator()(char* text) const { ::free(text); }
  };
  const std::unique_ptr<char, Free> real(::realpath(path.c_str(), nullptr));
  if (real == nullptr) return Error(FileError(errno, path));
  return std::string(real.get());
}

Status CheckInside(const std::string& real_root, const std::string& real_path,
                   const std::string& what) {
  const std::string within = real_root.ends_with('/') ? real_root : real_root + "/";
  if (real_path == real_root || real_path.starts_with(within)) return OkStatus();
  return {
      Code::kPermissionDenied,
      fmt::format("{}: a link that leads out of the source, to {}: put the file itself there, or "
                  "take a folder as source that holds both",
                  what, real_path)};
}

Status CheckOpenInside(const std::string& real_root, int fd, const std::string& what) {
  std::array<char, PATH_MAX> path;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const ssize_t length =
      ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size());
  if (length <= 0) return OkStatus();
  return CheckInside(real_root, std::string(path.data(), static_cast<size_t>(length)), what);
}

}  // namespace optcache::storage::internal
