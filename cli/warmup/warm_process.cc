#include "cli/warmup/warm_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace optcache::cli {
namespace {

constexpr std::size_t kLineBytesMax = 4096;
constexpr int kCannotRunWarm = 127;  // as a shell says

// Between fork and exec: only calls that are safe there. Writes errno to `failure`, which closes if
// there is none.
[[noreturn]] void Become(char* const* arguments, int output, int log, int failure, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kCannotRunWarm);  // it has ended already
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  const int error = errno;
  if (::write(failure, &error, sizeof error) != sizeof error) ::_exit(kCannotRunWarm);
  ::_exit(kCannotRunWarm);
}

struct WarmPipe {
  UniqueFd reading;
  UniqueFd writing;
};

Result<WarmPipe> MakeWarmPipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error(ErrnoStatus(errno, "cannot make a pipe"));
  return WarmPipe{.reading = UniqueFd(ends[0]), .writing = UniqueFd(ends[1])};
}

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
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ASSIGN_OR_RETURN(WarmPipe output, MakeWarmPipe());
  ASSIGN_OR_RETURN(WarmPipe failure, MakeWarmPipe());
  const UniqueFd log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return ErrnoStatus(errno, "cannot open " + log_file);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "cannot run " + command.at(0));
  if (pid == 0)
    Become(arguments.data(), output.writing.get(), log.get(), failure.writing.get(), parent);
  failure.writing.Reset();
  int error = 0;
  if (::read(failure.reading.get(), &error, sizeof error) == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    return ErrnoStatus(error, "cannot run " + command.at(0));
  }
  ::fcntl(output.reading.get(), F_SETFL, O_NONBLOCK);
  output_ = std::move(output.reading);
  pid_ = pid;
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
