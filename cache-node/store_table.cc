#include "cache-node/store_table.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace optcache::node {
namespace {

// What a status can show: one line of UTF-8.
std::string Printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const bool is_control = length == 1 && (text[0] < ' ' || text[0] == '\x7f');
    line += length == 0 || is_control ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return CutText(std::move(line), coordination::kMaxCauseBytes);
}

}  // namespace

void StoreTable::OnHealth(ClientId from, const wire::StoreHealth& health, MonotonicTime now) {
  auto& datasets = clients_[from];
  if (datasets.size() >= coordination::kMaxDatasets && !datasets.contains(health.dataset)) return;
  Entry& entry = datasets[health.dataset];
  if (entry.state != health.state) ++changes_;
  entry = {.state = health.state};
  if (health.state != wire::StoreState::kSilent) return;
  const auto silent = std::min<std::uint64_t>(health.silent_ms, coordination::kMaxSilentMs);
  entry.silent_since = now - std::chrono::milliseconds(silent);
  entry.cause = Printable(health.cause);
}

void StoreTable::OnClosed(ClientId from) {
  if (clients_.erase(from) > 0) ++changes_;
}

// The cause is that of whom it is silent to for the longest.
coordination::StoreReport StoreTable::Report(wire::DatasetKey dataset, MonotonicTime now) const {
  coordination::StoreReport report;
  const Entry* longest = nullptr;
  for (const auto& [_, datasets] : clients_) {
    const auto found = datasets.find(dataset);
    if (found == datasets.end()) continue;
    const Entry& entry = found->second;
    if (entry.state == wire::StoreState::kAnswers) ++report.answering;
    if (entry.state != wire::StoreState::kSilent) continue;
    ++report.silent;
    if (longest == nullptr || entry.silent_since < longest->silent_since) longest = &entry;
  }
  if (longest == nullptr) return report;
  const auto silent =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - longest->silent_since);
  report.silent_ms =
      std::min(static_cast<std::uint64_t>(silent.count()), coordination::kMaxSilentMs);
  report.cause = longest->cause;
  return report;
}

}  // namespace optcache::node
