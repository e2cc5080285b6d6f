// Keeps one child process for each spec, and looks at all of them at each Tick.
//
// A child that ends is started again when its backoff is over, unless the supervisor stops. Only a
// child that ends with an error before it ever ran long counts as one that cannot start; after a
// few of those, failure() tells the owner. After Stop no child starts, and those that are left
// after the grace are killed. Time is an argument, so tests need no clock.

#include "cli/up/supervisor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/unique_fd.h"
#include "cli/up/child_process.h"
#include "cli/up/orphans.h"

namespace optcache::cli {
namespace {

constexpr ByteCount kLogEndBytes = 4096;

// The last line of a log whose end it is; without the name of the program that begins it.
std::string LastLine(std::string text, const std::string& program) {
  while (text.ends_with('\n'))
    text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  const std::string name = std::filesystem::path(program).filename().string() + ": ";
  return text.starts_with(name) ? text.substr(name.size()) : text;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, std::function<void(const std::string&)> say)
    : options_(options), say_(std::move(say)) {}

Supervisor::~Supervisor() {
  for (const auto& child : children_) {
    if (child->pid == 0) continue;
    ::kill(child->pid, SIGKILL);
    ::waitpid(child->pid, nullptr, 0);
  }
}

Status Supervisor::Start(ChildSpec spec, MonotonicTime now) {
  const std::uint64_t seed = std::hash<std::string>{}(spec.name);
  auto child = std::make_unique<Child>(
      Child{.spec = std::move(spec), .backoff = Backoff(options_.restart, seed)});
  RETURN_IF_ERROR(Launch(*child, now));
  children_.push_back(std::move(child));
  return OkStatus();
}

Status Supervisor::Launch(Child& child, MonotonicTime now) {
  const UniqueFd log(
      ::open(child.spec.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return ErrnoStatus(errno, "cannot open " + child.spec.log_file);
  ASSIGN_OR_RETURN(child.pid, StartChild({.command = child.spec.command,
                                          .output = log.get(),
                                          .error = log.get(),
                                          .prepare = [] { MarkWriter(STDERR_FILENO); }}));
  child.started = now;
  return OkStatus();
}

void Supervisor::OnDeath(Child& child, int wait_status, MonotonicTime now) {
  child.pid = 0;
  if (stopping_) return;
  if (now - child.started >= options_.healthy_after) {
    child.backoff.Reset();
    child.was_healthy = true;
  }
  // A signal, or the end that SIGTERM asks for, comes from outside: it says nothing of the start.
  const bool by_error = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0;
  if (by_error) {
    const std::string log = ReadFileEnd(child.spec.log_file, kLogEndBytes).value_or("");
    CountFailedStart(child, LastLine(log, child.spec.command.at(0)));
  }
  const Duration wait = child.backoff.Next();
  child.start_at = now + wait;
  say_(fmt::format("{} died ({}), starts again in {:.1f} s; it wrote {}", child.spec.name,
                   HowItEnded(wait_status), ToSeconds(wait), child.spec.log_file));
}

void Supervisor::CountFailedStart(Child& child, const std::string& why) {
  if (child.was_healthy || ++child.failed_starts < options_.failed_starts_max) return;
  if (failure_.ok()) failure_ = {Code::kUnavailable, child.spec.name + " does not start: " + why};
}

void Supervisor::Tick(MonotonicTime now) {
  for (const auto& child : children_) {
    int wait_status = 0;
    if (child->pid != 0 && ::waitpid(child->pid, &wait_status, WNOHANG) == child->pid) {
      OnDeath(*child, wait_status, now);
    }
    if (child->pid != 0 || stopping_ || now < child->start_at) continue;
    if (const Status status = Launch(*child, now); status.ok()) {
      ++restarts_;
      say_(child->spec.name + " started again");
    } else {
      child->start_at = now + child->backoff.Next();
      say_(status.message());
      CountFailedStart(*child, status.message());
    }
  }
  if (!stopping_ || killed_ || now < kill_at_) return;
  killed_ = true;
  for (const auto& child : children_) {
    if (child->pid == 0) continue;
    say_(fmt::format("{} did not stop within {:.0f} s and is killed", child->spec.name,
                     ToSeconds(options_.stop_grace)));
    ::kill(child->pid, SIGKILL);
  }
}

void Supervisor::Stop(MonotonicTime now) {
  if (std::exchange(stopping_, true)) return;
  kill_at_ = now + options_.stop_grace;
  for (const auto& child : children_) {
    if (child->pid != 0) ::kill(child->pid, SIGTERM);
  }
}

std::size_t Supervisor::running() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(children_, [](const auto& child) { return child->pid != 0; }));
}

pid_t Supervisor::PidOf(const std::string& name) const {
  for (const auto& child : children_) {
    if (child->spec.name == name) return child->pid;
  }
  return 0;
}

}  // namespace optcache::cli
