#include "cli/up/orphans.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

#include "base/unique_fd.h"

extern "C" {  // which the header of glibc 2.36 forgets
#include <sys/pidfd.h>
}

namespace optcache::cli {
namespace {

constexpr Duration kKillGrace = std::chrono::seconds(10);  // the kernel's, after SIGKILL

struct flock WholeFile() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// 0: nobody.
pid_t WriterOf(int log_fd) {
  struct flock lock = WholeFile();
  if (::fcntl(log_fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_pid;
}

// Of the process that writes the log; not valid if there is none.
UniqueFd OpenWriter(const std::string& log) {
  const UniqueFd fd(::open(log.c_str(), O_RDONLY | O_CLOEXEC));
  const pid_t pid = fd.valid() ? WriterOf(fd.get()) : 0;
  if (pid <= 0) return {};
  UniqueFd process(::pidfd_open(pid, 0));
  // It may have ended meanwhile, and another have got its number.
  return WriterOf(fd.get()) == pid ? std::move(process) : UniqueFd();
}

void Signal(const std::vector<UniqueFd>& processes, int signal) {
  for (const UniqueFd& process : processes)
    ::pidfd_send_signal(process.get(), signal, nullptr, 0);  // fails for those that have ended
}

bool EndsBefore(const UniqueFd& process, Deadline deadline) {
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining(SystemClock().Now()));
  return ::poll(&ended, 1, static_cast<int>(left.count())) == 1;
}

bool AllEndWithin(const std::vector<UniqueFd>& processes, Duration grace) {
  const Deadline deadline = Deadline::After(SystemClock(), grace);
  return std::ranges::all_of(
      processes, [&](const UniqueFd& process) { return EndsBefore(process, deadline); });
}

}  // namespace

void MarkWriter(int log_fd) {
  const struct flock lock = WholeFile();
  ::fcntl(log_fd, F_SETLK, &lock);
}

Result<std::size_t> StopOrphans(const std::string& log_dir, Duration grace) {
  std::vector<UniqueFd> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(log_dir, error)) {
    if (UniqueFd process = OpenWriter(entry.path().string()); process.valid()) {
      processes.push_back(std::move(process));
    }
  }
  if (error) return Error(ErrnoStatus(error.value(), "cannot look into " + log_dir));
  Signal(processes, SIGTERM);
  if (AllEndWithin(processes, grace)) return processes.size();
  Signal(processes, SIGKILL);
  if (AllEndWithin(processes, kKillGrace)) return processes.size();
  return Error(Code::kDeadlineExceeded,
               "processes of an `optcache up` that was killed do not end; they write the logs in " +
                   log_dir);
}

}  // namespace optcache::cli
