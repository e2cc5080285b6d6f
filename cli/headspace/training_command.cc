#include "cli/headspace/training_command.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/unique_fd.h"
#include "cli/up/child_process.h"

namespace optcache::cli {
namespace {

constexpr const char* kUsualPath = "/bin:/usr/bin";  // as execvp's, where there is no PATH

// Whether the process ends within `wait`.
bool EndsWithin(pid_t pid, Duration wait) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return false;
  pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
  const auto wait_ms = std::chrono::duration_cast<std::chrono::milliseconds>(wait).count();
  return ::poll(&end, 1, static_cast<int>(wait_ms)) == 1;
}

// Ok if this file can be run; `missing` if there is none.
Status ErrnoOfProgram(const std::string& file, const Status& missing) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return missing;
  if (std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0)
    return OkStatus();
  return ErrnoStatus(EACCES, "cannot run " + file);
}

}  // namespace

TrainingCommand::~TrainingCommand() {
  Stop(std::chrono::seconds(1));
}

Status TrainingCommand::Find(const std::string& program) {
  const Status missing = ErrnoStatus(ENOENT, "cannot run " + program);
  if (program.contains('/')) return ErrnoOfProgram(program, missing);
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::istringstream folders(path == nullptr ? kUsualPath : path);
  Status found = missing;
  for (std::string folder; std::getline(folders, folder, ':');) {
    Status here = ErrnoOfProgram((folder.empty() ? "." : folder) + "/" + program, missing);
    if (here.ok()) return here;
    if (here.code() != Code::kNotFound) found = std::move(here);
  }
  return found;
}

Status TrainingCommand::Start(std::vector<std::string> command,
                              const std::map<std::string, std::string>& environment) {
  ASSIGN_OR_RETURN(pid_, StartChild({.command = std::move(command), .environment = environment}));
  return OkStatus();
}

std::optional<std::string> TrainingCommand::Ended() {
  int wait_status = 0;
  if (pid_ != 0 && ::waitpid(pid_, &wait_status, WNOHANG) == pid_) {
    pid_ = 0;
    ended_ = HowItEnded(wait_status);
  }
  return ended_;
}

void TrainingCommand::Stop(Duration grace) {
  if (pid_ == 0 || Ended()) return;
  ::kill(-pid_, SIGTERM);
  EndsWithin(pid_, grace);
  // Not waited for yet, so its id still names this group and no other.
  ::kill(-pid_, SIGKILL);
  int wait_status = 0;
  ::waitpid(pid_, &wait_status, 0);
  pid_ = 0;
  ended_ = HowItEnded(wait_status);
}

}  // namespace optcache::cli
