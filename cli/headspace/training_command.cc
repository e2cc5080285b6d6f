#include "cli/headspace/training_command.h"

#include <fcntl.h>
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

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace optcache::cli {
namespace {

constexpr const char* kUsualPath = "/bin:/usr/bin";  // as execvp's, where there is no PATH
constexpr int kCannotRun = 127;                      // as a shell says

std::string EndOf(int wait_status) {
  if (WIFSIGNALED(wait_status)) return fmt::format("signal {}", WTERMSIG(wait_status));
  return fmt::format("exit status {}", WEXITSTATUS(wait_status));
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!more.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : more)
    all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// Between fork and exec: only calls that are safe there. Writes errno to `failure`, which closes if
// there is none.
[[noreturn]] void BecomeCommand(char* const* arguments, char* const* environment, int failure) {
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);  // it is no foreground process: the terminal would stop it
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::execvpe(arguments[0], arguments, environment);
  const int error = errno;
  if (::write(failure, &error, sizeof error) != sizeof error) ::_exit(kCannotRun);
  ::_exit(kCannotRun);
}

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
  std::vector<std::string> variables = EnvironmentWith(environment);
  const std::vector<char*> arguments = PointersTo(command);
  const std::vector<char*> pointers = PointersTo(variables);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "cannot run " + command.at(0));
  if (pid == 0) BecomeCommand(arguments.data(), pointers.data(), writing.get());
  ::setpgid(pid, pid);  // parent and child both do: the first counts
  writing.Reset();
  int error = 0;
  if (::read(reading.get(), &error, sizeof error) == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    return ErrnoStatus(error, "cannot run " + command.at(0));
  }
  pid_ = pid;
  return OkStatus();
}

std::optional<std::string> TrainingCommand::Ended() {
  int wait_status = 0;
  if (pid_ != 0 && ::waitpid(pid_, &wait_status, WNOHANG) == pid_) {
    pid_ = 0;
    ended_ = EndOf(wait_status);
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
  ended_ = EndOf(wait_status);
}

}  // namespace optcache::cli
