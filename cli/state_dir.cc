#include "cli/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"

namespace optcache::cli {
namespace {

constexpr const char* kCoordinatorFile = "/coordinator";
constexpr ByteCount kUrlBytesMax = 4096;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? ErrnoStatus(error.value(), "cannot make the folder " + path) : OkStatus();
}

}  // namespace

std::string DefaultStateDir() {
  if (const std::string state = Environment("XDG_STATE_HOME"); !state.empty()) {
    return state + "/optcache";
  }
  const std::string home = Environment("HOME");
  return (home.empty() ? "/tmp" : home) + "/.local/state/optcache";
}

Result<StateDir> StateDir::Open(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  RETURN_IF_ERROR(MakeFolder(absolute));
  UniqueFd lock(::open((absolute + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.valid()) return Error(ErrnoStatus(errno, "cannot open " + absolute + "/lock"));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error(Code::kConflict, "another `optcache up` works in " + absolute +
                                      ": stop it or choose another folder with --state");
  }
  return StateDir(absolute, std::move(lock));
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
