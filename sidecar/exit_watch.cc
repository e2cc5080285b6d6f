#include "sidecar/exit_watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/log.h"

namespace optcache::sidecar {
namespace {

namespace fs = std::filesystem;

constexpr auto kLookEvery = std::chrono::seconds(1);

// The parent's id: the second field after the command, which is in brackets and may hold anything.
// 0: the process has gone.
int ParentOf(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos || end + 4 >= stat.size()) return 0;
  int parent = 0;
  std::from_chars(stat.data() + end + 4, stat.data() + stat.size(), parent);
  return parent;
}

}  // namespace

bool ExitRule::IsOver(const PodSight& sight, MonotonicTime now) {
  if (sight.exit_file) return true;
  if (sight.clients > 0) {
    had_clients_ = true;
    alone_since_.reset();
    return false;
  }
  if (!had_clients_) return false;
  if (sight.others_alive.has_value()) return !*sight.others_alive;
  if (!alone_since_) alone_since_ = now;
  return now - *alone_since_ >= linger_;
}

std::optional<bool> OthersAlive(const std::string& proc, int self) {
  if (self == 1) return std::nullopt;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(proc, error)) {
    const std::string name = entry.path().filename().string();
    int id = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (failed != std::errc() || end != name.data() + name.size()) continue;
    if (id == 1 || id == self) continue;
    const int parent = ParentOf(entry.path());
    if (parent != 0 && parent != self) return true;
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
      rule_(options_.linger) {
  timer_ = loop_.After(kLookEvery, [this] { Look(); });
}

void ExitWatch::Look() {
  std::error_code ignored;
  const PodSight sight{.exit_file = fs::exists(options_.file, ignored),
                       .clients = clients_(),
                       .others_alive = OthersAlive(options_.proc, ::getpid())};
  if (!rule_.IsOver(sight, clock_.Now())) {
    timer_ = loop_.After(kLookEvery, [this] { Look(); });
    return;
  }
  Log(LogLevel::kInfo, "the training containers have ended",
      {{"exit_file", sight.exit_file ? "there" : "not there"}});
  on_over_();
}

}  // namespace optcache::sidecar
