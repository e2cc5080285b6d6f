#include "cli/local/state_dir.h"

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
constexpr ByteCount kAddressBytesMax = 4096;
// Held by who works in the folder; says who that is.
constexpr const char* kLockFile = "/lock";
constexpr ByteCount kProgramBytesMax = 256;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

// For this user alone. One that is there keeps its mode; it must be this user's or root's, and no
// other user may write to it, by its group neither.
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
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return {Code::kPermissionDenied,
            fmt::format("other users may write to {0} and could change what lies there: run `chmod "
                        "go-w {0}`, or choose another folder with --state",
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

Result<std::string> StateDir::PrivateSubfolder(const std::string& name) const {
  ASSIGN_OR_RETURN(std::string path, Subfolder(name));
  if (::chmod(path.c_str(), 0700) != 0) {
    return Error(ErrnoStatus(errno, fmt::format("cannot keep {} from other users; remove it, or "
                                                "choose another folder with --state",
                                                path)));
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return Error(ErrnoStatus(errno, "look at " + path));
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error(Code::kPermissionDenied,
                 fmt::format("the filesystem of {} keeps no modes, so other users could reach what "
                             "lies there: choose a folder of another filesystem with --state",
                             path));
  }
  return path;
}

Status StateDir::WriteCoordinator(const std::string& address) const {
  return WriteFileAtomically(path_ + kCoordinatorFile, address + "\n");
}

void StateDir::RemoveCoordinator() const {
  std::error_code ignored;
  std::filesystem::remove(path_ + kCoordinatorFile, ignored);
}

Result<std::string> FindCoordinator(const std::string& flag, const std::string& state_dir) {
  if (!flag.empty()) return flag;
  if (std::string named = Environment("OPTCACHE_COORDINATOR"); !named.empty()) return named;
  Result<std::string> address = ReadFile(state_dir + kCoordinatorFile, kAddressBytesMax);
  if (address && !address->empty()) return address->substr(0, address->find('\n'));
  if (!address && address.error().code() == Code::kPermissionDenied) {
    return Error(
        Code::kPermissionDenied,
        state_dir + " is another user's: an `optcache up` answers its user and root alone");
  }
  return Error(Code::kNotFound, "no coordinator: `optcache up` does not run in " + state_dir +
                                    "; name one by --coordinator ADDRESS or OPTCACHE_COORDINATOR");
}

}  // namespace optcache::cli
