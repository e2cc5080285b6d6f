#include "cli/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/files.h"

namespace optcache::cli {
namespace {

constexpr const char* kCoordinatorFile = "/coordinator";
constexpr ByteCount kUrlBytesMax = 4096;
// Held by who works in the folder; says who that is.
constexpr const char* kLockFile = "/lock";
constexpr ByteCount kProgramBytesMax = 256;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

// For this user alone. One that is there keeps its mode; it must be this user's or root's, and not
// every user may write to it.
Status MakeFolder(const std::string& path) {
  const std::filesystem::path whole(path);
  std::error_code error;
  std::filesystem::create_directories(whole.parent_path(), error);
  if (error) return ErrnoStatus(error.value(), "cannot make the folder " + path);
  if (::mkdir(path.c_str(), 0700) == 0) return OkStatus();
  if (errno != EEXIST) return ErrnoStatus(errno, "cannot make the folder " + path);
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "look at " + path);
  if (!S_ISDIR(info.st_mode)) return {Code::kInvalidArgument, path + " is no folder"};
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return {Code::kPermissionDenied,
            fmt::format("{} is user {}'s, who could change what lies there: choose a folder of "
                        "yours with --state",
                        path, info.st_uid)};
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return {Code::kPermissionDenied,
            fmt::format("every user may write to {0} and could change what lies there: run `chmod "
                        "o-w {0}`, or choose another folder with --state",
                        path)};
  }
  return OkStatus();
}

}  // namespace

std::string DefaultStateDir() {
  if (const std::string state = Environment("XDG_STATE_HOME"); !state.empty()) {
    return state + "/optcache";
  }
  const std::string home = Environment("HOME");
  return (home.empty() ? "/tmp" : home) + "/.local/state/optcache";
}

Result<StateDir> StateDir::Open(const std::string& path, std::string_view program) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (absolute.find('=') != std::string::npos) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} has a '=' in its path, which ends names in arguments: choose "
                             "another folder with --state",
                             absolute));
  }
  RETURN_IF_ERROR(MakeFolder(absolute));
  Result<UniqueFd> lock = LockFile(absolute + kLockFile);
  if (!lock && lock.error().code() == Code::kConflict) {
    const Result<std::string> other = ReadFile(absolute + kLockFile, kProgramBytesMax);
    return Error(Code::kConflict,
                 fmt::format("{} works in {}: stop it or choose another folder with --state",
                             other && !other->empty() ? *other : "another program", absolute));
  }
  if (!lock) return Error(lock.error());
  if (::ftruncate(lock->get(), 0) != 0) return Error(ErrnoStatus(errno, absolute + kLockFile));
  RETURN_IF_ERROR(
      WriteAll(lock->get(), fmt::format("`{}`, process {},", program, ::getpid()), kLockFile));
  return StateDir(absolute, *std::move(lock));
}

Result<std::string> StateDir::Subfolder(const std::string& name) const {
  std::string path = path_ + "/" + name;
  RETURN_IF_ERROR(MakeFolder(path));
  return path;
}

Status StateDir::WriteCoordinator(const std::string& url) const {
  return WriteFileAtomically(path_ + kCoordinatorFile, url + "\n");
}

void StateDir::RemoveCoordinator() const {
  std::error_code ignored;
  std::filesystem::remove(path_ + kCoordinatorFile, ignored);
}

Result<std::string> FindCoordinator(const std::string& flag, const std::string& state_dir) {
  if (!flag.empty()) return flag;
  if (std::string url = Environment("OPTCACHE_COORDINATOR"); !url.empty()) return url;
  Result<std::string> url = ReadFile(state_dir + kCoordinatorFile, kUrlBytesMax);
  if (url && !url->empty()) return url->substr(0, url->find('\n'));
  return Error(Code::kNotFound, "no coordinator: `optcache up` does not run in " + state_dir +
                                    "; name one by --coordinator URL or OPTCACHE_COORDINATOR");
}

}  // namespace optcache::cli
