#include "cache-node/holding_log.h"

namespace optcache::node {

void HoldingLog::Note(SampleId id, bool gained) {
  if (homes_.empty()) return;
  const wire::MemberId home = homes_.Home(id);
  if (home == self_) {
    if (gained) {
      directory_.Gained(id, self_);
    } else {
      directory_.Lost(id, self_);
    }
    return;
  }
  auto& changes = pending_[home];
  changes[id] = gained;
  if (changes.size() >= wire::kMaxItems) Flush();
}

void HoldingLog::Flush() {
  for (const auto& [home, changes] : pending_) {
    wire::Holding message{.dataset = dataset_};
    for (const auto& [id, gained] : changes)
      (gained ? message.gained : message.lost).push_back(id);
    // A home that can't be reached learns nothing: its members' reads become misses, and it is
    // told anew when the members change.
    effects_.Send(home, 0, message, nullptr);
  }
  pending_.clear();
}

}  // namespace optcache::node
