// Starts kubectl, reads both of its outputs until they end, and turns what it said into a code.
//
// Input is a file in memory, so a kubectl that does not read it blocks nothing. Standard output and
// standard error are read together, within the timeout and with a limit for each; a pipe that fills
// up thus never holds kubectl. Whatever ends a call, the child is killed if need be and reaped
// (Child).

#include "cli/cluster/kubectl.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/files.h"
#include "base/unique_fd.h"

namespace optcache::cli {
namespace {

constexpr std::size_t kMaxErrorBytes = 4096;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error(Code::kResourceExhausted, fmt::format("pipe: {}", std::strerror(errno)));
  }
  return Pipe{.read = UniqueFd(ends[0]), .write = UniqueFd(ends[1])};
}

// A child that is reaped, at the latest when this dies.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    Reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Its wait status.
  int Reap() {
    int status = 0;
    if (pid_ > 0) {
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
};

// A file that ends after `text`, without a name.
Result<UniqueFd> MakeInput(std::string_view text) {
  UniqueFd file(::memfd_create("kubectl-input", MFD_CLOEXEC));
  if (!file.valid()) {
    return Error(Code::kResourceExhausted, fmt::format("memfd_create: {}", std::strerror(errno)));
  }
  RETURN_IF_ERROR(WriteAll(file.get(), text, "kubectl's input"));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<pid_t> Spawn(const std::vector<std::string>& command, const UniqueFd& input, const Pipe& out,
                    const Pipe& err) {
  std::vector<char*> arguments;
  for (const std::string& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT(*-const-cast): exec's type
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  // ^C ends it, also where its parent has signals blocked.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return Error(Code::kNotFound, command[0] + " is not installed, or not in the PATH");
  }
  if (error != 0) {
    return Error(Code::kUnavailable, fmt::format("{}: {}", command[0], std::strerror(error)));
  }
  return pid;
}

// Reads both pipes to their ends. What is past `kMaxErrorBytes` of the second is dropped.
Status ReadAll(int out_fd, int err_fd, const KubectlOptions& options, std::string& out,
               std::string& err) {
  const MonotonicTime deadline = SystemClock().Now() + options.timeout;
  std::array<pollfd, 2> fds = {pollfd{.fd = out_fd, .events = POLLIN, .revents = 0},
                               pollfd{.fd = err_fd, .events = POLLIN, .revents = 0}};
  std::array<char, 65536> piece{};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SystemClock().Now());
    if (left.count() <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left.count())) == 0) {
      return {
          Code::kDeadlineExceeded,
          fmt::format("kubectl did not end within {} s: does the API server answer?",
                      std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count())};
    }
    for (pollfd& fd : fds) {
      if (fd.fd < 0 || fd.revents == 0) continue;
      const ssize_t n = ::read(fd.fd, piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        fd.fd = -1;
        continue;
      }
      std::string& text = &fd == fds.data() ? out : err;
      if (&text == &err && err.size() >= kMaxErrorBytes) continue;
      text.append(piece.data(), static_cast<std::size_t>(n));
      if (out.size() > options.max_output) {
        return {Code::kResourceExhausted,
                "kubectl printed more than " + FormatBytes(options.max_output)};
      }
    }
  }
  return OkStatus();
}

Code CodeOf(const std::string& said) {
  if (said.contains("(NotFound)") || said.contains("not found")) return Code::kNotFound;
  if (said.contains("(Forbidden)")) return Code::kPermissionDenied;
  return Code::kUnavailable;
}

// kubectl's own words, but where it reaches no cluster: then it prints a line of its log for each
// attempt, and the last line says why.
std::string Told(std::string said) {
  while (!said.empty() && said.back() == '\n')
    said.pop_back();
  if (said.empty()) return "kubectl failed and said nothing";
  const bool is_lost = said.contains("Unable to connect to the server") ||
                       said.contains("couldn't get current server API group list") ||
                       said.contains("was refused - did you specify the right host or port?");
  if (!is_lost) return said;
  return fmt::format("kubectl reaches no cluster: check --context and KUBECONFIG. It says: {}",
                     said.substr(said.rfind('\n') + 1));
}

}  // namespace

Result<std::string> Kubectl::Run(const std::vector<std::string>& arguments,
                                 std::string_view input) const {
  std::vector<std::string> command = {options_.program};
  if (!options_.context.empty()) command.push_back("--context=" + options_.context);
  if (!options_.kubeconfig.empty()) command.push_back("--kubeconfig=" + options_.kubeconfig);
  command.insert(command.end(), arguments.begin(), arguments.end());
  ASSIGN_OR_RETURN(const UniqueFd in, MakeInput(input));
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(Pipe err, MakePipe());
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(command, in, out, err));
  Child child(pid);
  out.write.Reset();
  err.write.Reset();
  std::string text;
  std::string said;
  RETURN_IF_ERROR(ReadAll(out.read.get(), err.read.get(), options_, text, said));
  const int status = child.Reap();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return Error(CodeOf(said), Told(said));
}

}  // namespace optcache::cli
