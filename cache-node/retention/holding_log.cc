#include "cache-node/retention/holding_log.h"

#include <utility>

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
  pending_[home][id] = gained;
}

void HoldingLog::SetHomes(cache::HomeMap homes) {
  homes_ = std::move(homes);
  pending_.clear();
}

// A home that cannot be reached is told when it can.
void HoldingLog::Flush() {
  for (auto& [home, changes] : pending_) {
    while (!changes.empty()) {
      wire::Holding message{.dataset = dataset_};
      auto end = changes.begin();
      for (std::size_t i = 0; i < wire::kMaxItems && end != changes.end(); ++i, ++end)
        (end->second ? message.gained : message.lost).push_back(end->first);
      if (!effects_.Send(home, 0, message, nullptr)) break;
      changes.erase(changes.begin(), end);
    }
  }
  std::erase_if(pending_, [](const auto& changes) { return changes.second.empty(); });
}

}  // namespace optcache::node
