#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

namespace optcache {
namespace {

constexpr size_t kReadStep = 1 << 20;
constexpr ByteCount kTokenMax = 4_KiB;  // as long as a Hello can carry

Status WriteAndSync(int fd, std::string_view content, const std::string& path) {
  RETURN_IF_ERROR(WriteAll(fd, content, path));
  if (::fsync(fd) != 0) return ErrnoStatus(errno, "fsync " + path);
  return OkStatus();
}

}  // namespace

Status WriteAll(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write " + name);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return OkStatus();
}

Result<std::string> ReadFile(const std::string& path, ByteCount limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat file = {};
  if (!fd.valid() || ::fstat(fd.get(), &file) != 0) {
    return Error(ErrnoStatus(errno, "open " + path));
  }
  const auto too_large = [&] {
    return Error(Code::kResourceExhausted,
                 fmt::format("{}: larger than the limit of {}", path, FormatBytes(limit)));
  };
  if (S_ISREG(file.st_mode) && static_cast<ByteCount>(file.st_size) > limit) return too_large();
  std::string content;
  while (true) {
    const size_t old_size = content.size();
    content.resize(old_size + kReadStep);
    const ssize_t n = ::read(fd.get(), content.data() + old_size, kReadStep);
    if (n < 0 && errno != EINTR) return Error(ErrnoStatus(errno, "read " + path));
    content.resize(old_size + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (content.size() > limit) return too_large();
    if (n == 0) return content;
  }
}

Result<std::string> ReadFileEnd(const std::string& path, ByteCount limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Error(ErrnoStatus(errno, "open " + path));
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  std::string content(std::min(limit, static_cast<ByteCount>(std::max<off_t>(size, 0))), '\0');
  const off_t begin = size - static_cast<off_t>(content.size());
  const ssize_t n = size < 0 ? -1 : ::pread(fd.get(), content.data(), content.size(), begin);
  if (n < 0) return Error(ErrnoStatus(errno, "read " + path));
  content.resize(static_cast<size_t>(n));
  return content;
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  {
    const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.valid()) return ErrnoStatus(errno, "cannot write " + path);
    if (Status status = WriteAndSync(fd.get(), content, path); !status.ok()) {
      ::unlink(temporary.c_str());
      return status;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return ErrnoStatus(error, "rename to " + path);
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) ::fsync(directory.get());
  return OkStatus();
}

Result<UniqueFd> LockFile(const std::string& path) {
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.valid()) return Error(ErrnoStatus(errno, "open " + path));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) return Error(Code::kConflict, path + " is locked by another");
  return Error(ErrnoStatus(errno, "lock " + path));
}

Result<std::string> ReadToken(const std::string& path) {
  ASSIGN_OR_RETURN(std::string token, ReadFile(path, kTokenMax));
  while (token.ends_with('\n') || token.ends_with('\r'))
    token.pop_back();
  const bool printable =
      std::ranges::all_of(token, [](unsigned char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || !printable) {
    return Error(Code::kInvalidArgument,
                 path + ": not a token: one line of printable characters without blanks");
  }
  return token;
}

void RaiseOpenFilesLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace optcache
