#include "cli/up/child_process.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace optcache::cli {
namespace {

constexpr int kCannotRun = 127;  // as a shell says

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
[[noreturn]] void Become(const ChildStart& start, char* const* arguments, char* const* environment,
                         int failure) {
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);  // it is no foreground process: the terminal would stop it
  ::dup2(start.output, STDOUT_FILENO);
  ::dup2(start.error, STDERR_FILENO);
  for (const int fd : {start.output, start.error})
    if (fd > STDERR_FILENO) ::close(fd);  // at exec it would take the locks of its file along
  if (start.prepare) start.prepare();
  ::execvpe(arguments[0], arguments, environment);
  const int error = errno;
  if (::write(failure, &error, sizeof error) != sizeof error) ::_exit(kCannotRun);
  ::_exit(kCannotRun);
}

// What the child has written to `failure`. False: nothing, and it has become the program.
bool ReadsError(int failure, int& error) {
  ssize_t count = -1;
  do {
    count = ::read(failure, &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  return count == sizeof error;
}

}  // namespace

Result<pid_t> StartChild(ChildStart start) {
  std::vector<std::string> variables = EnvironmentWith(start.environment);
  const std::vector<char*> arguments = PointersTo(start.command);
  const std::vector<char*> environment = PointersTo(variables);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error(ErrnoStatus(errno, "cannot make a pipe"));
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Error(ErrnoStatus(errno, "cannot run " + start.command.at(0)));
  if (pid == 0) Become(start, arguments.data(), environment.data(), writing.get());
  writing.Reset();
  int error = 0;
  if (!ReadsError(reading.get(), error)) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return Error(ErrnoStatus(error, "cannot run " + start.command.at(0)));
}

std::string HowItEnded(int wait_status) {
  if (WIFSIGNALED(wait_status)) return fmt::format("signal {}", WTERMSIG(wait_status));
  return fmt::format("exit status {}", WEXITSTATUS(wait_status));
}

}  // namespace optcache::cli
