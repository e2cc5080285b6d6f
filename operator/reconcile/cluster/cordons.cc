#include "operator/reconcile/cluster/cordons.h"

namespace optcache::reconcile {

void Cordons::Observe(const std::set<std::string>& cordoned, MonotonicTime now) {
  std::erase_if(since_, [&](const auto& entry) { return !cordoned.contains(entry.first); });
  for (const std::string& node : cordoned)
    since_.emplace(node, now);
}

std::set<std::string> Cordons::Meant(MonotonicTime now) const {
  std::set<std::string> nodes;
  for (const auto& [node, since] : since_) {
    if (now - since >= kCordonIsMeantAfter) nodes.insert(node);
  }
  return nodes;
}

}  // namespace optcache::reconcile
