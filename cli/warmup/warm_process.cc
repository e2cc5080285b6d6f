#include "cli/warmup/warm_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "cli/up/child_process.h"

namespace optcache::cli {
namespace {

constexpr std::size_t kLineBytesMax = 4096;

}  // namespace

WarmProcess::~WarmProcess() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

WarmProcess::WarmProcess(WarmProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      output_(std::move(other.output_)),
      rest_(std::move(other.rest_)),
      last_line_(std::move(other.last_line_)),
      succeeded_(other.succeeded_) {}

Status WarmProcess::Start(std::vector<std::string> command, const std::string& log_file) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  const UniqueFd log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return ErrnoStatus(errno, "cannot open " + log_file);
  const auto end_with_parent = [parent = ::getpid()] {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(EXIT_FAILURE);  // it has ended already
  };
  ASSIGN_OR_RETURN(pid_, StartChild({.command = std::move(command),
                                     .output = writing.get(),
                                     .error = log.get(),
                                     .prepare = end_with_parent}));
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  output_ = std::move(reading);
  return OkStatus();
}

bool WarmProcess::Look() {
  if (pid_ == 0) return false;
  int wait_status = 0;
  const bool ended = ::waitpid(pid_, &wait_status, WNOHANG) == pid_;
  TakeLines();  // after that: what it printed last is there
  if (!ended) return true;
  pid_ = 0;
  succeeded_ = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  return false;
}

void WarmProcess::TakeLines() {
  char bytes[kLineBytesMax];
  ssize_t count = 0;
  while ((count = ::read(output_.get(), bytes, sizeof bytes)) > 0) {
    rest_.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      last_line_ = rest_.substr(0, end);
      rest_.erase(0, end + 1);
    }
    if (rest_.size() > kLineBytesMax) rest_.clear();
  }
}

void WarmProcess::Stop() const {
  if (pid_ != 0) ::kill(pid_, SIGTERM);
}

}  // namespace optcache::cli
