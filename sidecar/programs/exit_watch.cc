#include "sidecar/programs/exit_watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/whole_number.h"

namespace optcache::sidecar {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLookEvery = std::chrono::seconds(1);
// A container that fails at once is there for longer, its runtime's preparations included.
constexpr Duration kLookEveryAtFirst = std::chrono::milliseconds(20);
// This many looks in a row, none later than by as much again, and it keeps pace.
constexpr int kLooksInTime = 10;
constexpr std::string_view kProgram = "optcache-sidecar";

// The parent's id: the second field after the command, which is in brackets and may hold anything.
// 0: the parent is of no container, so that this is a container's first process. Nothing: the
// process has gone.
std::optional<int> ParentOf(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos || end + 4 >= stat.size()) return std::nullopt;
  int parent = 0;
  std::from_chars(stat.data() + end + 4, stat.data() + stat.size(), parent);
  return parent;
}

// Another process of this program: a hook or a probe, which the kubelet starts like a container's.
bool IsOurs(const fs::path& process) {
  std::ifstream file(process / "cmdline");
  std::string command;
  std::getline(file, command, '\0');
  return fs::path(command).filename() == kProgram;
}

bool Exists(const std::string& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

}  // namespace

bool ExitRule::IsOver(const PodSight& sight, MonotonicTime now) {
  if (sight.exit_file) return true;
  if (sight.clients > 0 || sight.others_alive.value_or(false)) {
    begun_ = true;
    alone_since_.reset();
    return false;
  }
  if (!begun_) return false;
  if (!alone_since_) alone_since_ = now;
  return now - *alone_since_ >= linger_;
}

std::optional<bool> OthersAlive(const std::string& proc, int self) {
  if (self == 1) return std::nullopt;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(proc, error)) {
    const std::string name = entry.path().filename().string();
    const auto id = ParseWholeNumber<int>(name);
    if (!id || *id == 1 || *id == self) continue;
    const std::optional<int> parent = ParentOf(entry.path());
    if (parent && *parent != self && !IsOurs(entry.path())) return true;
  }
  return error ? std::nullopt : std::optional(false);
}

ExitWatch::ExitWatch(net::EventLoop& loop, const Clock& clock, Options options,
                     std::function<std::size_t()> clients, std::function<void()> on_over)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      clients_(std::move(clients)),
      on_over_(std::move(on_over)),
      begun_file_(options_.file + ".begun"),
      watched_file_(options_.file + ".watched"),
      rule_(options_.linger, Exists(begun_file_)) {
  const bool settled = !options_.shared_processes || rule_.begun();
  const MonotonicTime due = clock_.Now() + kLookEveryAtFirst;
  timer_ = loop_.After(kLookEveryAtFirst, [this, settled, due] {
    if (settled) {
      Look();
    } else {
      Settle(due, 0);
    }
  });
}

void ExitWatch::Note(const std::string& file) const {
  const Status status = WriteFileAtomically(file, "");
  if (!status.ok()) {
    Log(LogLevel::kWarning, "cannot note what containers do",
        {{"file", file}, {"error", status.message()}});
  }
}

void ExitWatch::Settle(MonotonicTime due, int looks_in_time) {
  const MonotonicTime now = clock_.Now();
  looks_in_time = now - due <= kLookEveryAtFirst ? looks_in_time + 1 : 0;
  if (looks_in_time == kLooksInTime) {
    Note(watched_file_);
    Look();
    return;
  }
  timer_ = loop_.After(kLookEveryAtFirst, [this, next = now + kLookEveryAtFirst, looks_in_time] {
    Settle(next, looks_in_time);
  });
}

void ExitWatch::Look() {
  PodSight sight{.exit_file = Exists(options_.file), .clients = clients_()};
  if (options_.shared_processes) sight.others_alive = OthersAlive(options_.proc, ::getpid());
  const bool had_begun = rule_.begun();
  const bool over = rule_.IsOver(sight, clock_.Now());
  if (rule_.begun() && !had_begun) Note(begun_file_);
  if (!over) {
    timer_ = loop_.After(rule_.begun() ? kLookEvery : kLookEveryAtFirst, [this] { Look(); });
    return;
  }
  Log(LogLevel::kInfo, "the training containers have ended",
      {{"exit_file", sight.exit_file ? "there" : "not there"}});
  on_over_();
}

void AwaitWatch(const std::string& file, Duration patience) {
  const MonotonicTime deadline = SystemClock().Now() + patience;
  while (!Exists(file + ".watched") && SystemClock().Now() < deadline)
    std::this_thread::sleep_for(kLookEveryAtFirst);
}

}  // namespace optcache::sidecar
