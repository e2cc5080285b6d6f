#include "cache-node/control/store_table.h"

#include <algorithm>

#include "base/utf8.h"

namespace optcache::node {

void StoreTable::OnHealth(ClientId from, const wire::StoreHealth& health, MonotonicTime now) {
  auto& datasets = clients_[from];
  if (datasets.size() >= coordination::kMaxDatasets && !datasets.contains(health.dataset)) return;
  Entry& entry = datasets[health.dataset];
  if (entry.state != health.state) ++changes_;
  entry = {.state = health.state};
  if (health.state == wire::StoreState::kChanged) return NoteChange(health, now);
  if (health.state != wire::StoreState::kSilent) return;
  const auto silent = std::min<std::uint64_t>(health.silent_ms, coordination::kMaxSilentMs);
  entry.silent_since = now - std::chrono::milliseconds(silent);
  entry.cause = CutText(Visible(health.cause), coordination::kMaxCauseBytes);
}

void StoreTable::NoteChange(const wire::StoreHealth& health, MonotonicTime now) {
  std::erase_if(changed_, [&](const auto& item) { return now - item.second.at >= kChangedFor; });
  if (changed_.size() >= coordination::kMaxDatasets && !changed_.contains(health.dataset)) return;
  changed_[health.dataset] = {
      .object = CutText(Visible(health.cause), coordination::kMaxCauseBytes), .at = now};
}

void StoreTable::OnClosed(ClientId from) {
  if (clients_.erase(from) > 0) ++changes_;
}

// The cause is that of whom it is silent to for the longest.
coordination::StoreReport StoreTable::Report(wire::DatasetKey dataset, MonotonicTime now) const {
  coordination::StoreReport report;
  const auto changed = changed_.find(dataset);
  if (changed != changed_.end() && now - changed->second.at < kChangedFor)
    report.changed = changed->second.object;
  const Entry* longest = nullptr;
  for (const auto& [_, datasets] : clients_) {
    const auto found = datasets.find(dataset);
    if (found == datasets.end()) continue;
    const Entry& entry = found->second;
    if (entry.state == wire::StoreState::kAnswers || entry.state == wire::StoreState::kChanged)
      ++report.answering;
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
