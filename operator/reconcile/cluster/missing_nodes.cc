#include "operator/reconcile/cluster/missing_nodes.h"

#include <algorithm>
#include <utility>

namespace optcache::reconcile {

MissingNodes::Absent MissingNodes::NewlyAbsent(const std::string& node, const Seen& seen) const {
  Absent absent{.was_member = members_.contains(node), .since = seen.now};
  if (!absent.was_member) return absent;
  for (const auto& [dataset, placed] : seen.placed) {
    if (!std::ranges::binary_search(placed.members, node)) absent.left_out.insert(dataset);
  }
  return absent;
}

void MissingNodes::Look(const Seen& seen) {
  std::set<std::string> members;
  std::set<std::string> served;  // a machine may have two pods for a while
  for (const coordination::MemberStatus& member : seen.status.members) {
    members.insert(member.name);
    const auto machine = seen.machines.find(member.name);
    if (machine != seen.machines.end()) served.insert(machine->second.node);
  }
  std::map<std::string, Absent> absent;
  for (const auto& [name, machine] : seen.machines) {
    // A pod that is not on a machine yet has no node that could be missing.
    if (machine.node.empty() || machine.leaving || machine.draining) continue;
    if (members.contains(name) || served.contains(machine.node)) continue;
    const auto before = absent_.find(name);
    Absent now = before != absent_.end() ? std::move(before->second) : NewlyAbsent(name, seen);
    now.machine = machine.node;
    now.labels = machine.labels;
    now.had_time = seen.unix_seconds - machine.created_at > kNodeStartsWithinSeconds;
    absent.emplace(name, std::move(now));
  }
  now_ = seen.now;
  absent_ = std::move(absent);
  members_ = std::move(members);
}

std::vector<std::string> MissingNodes::Of(const Placed& placed, const api::Placement& placement,
                                          Duration longer_than) const {
  if (placement.max_nodes && placed.members.size() >= *placement.max_nodes) return {};
  std::set<std::string> machines;
  for (const auto& [node, absent] : absent_) {
    if (now_ - absent.since > longer_than && (absent.was_member || absent.had_time) &&
        !absent.left_out.contains(placed.dataset) &&
        std::ranges::includes(absent.labels, placement.node_selector))
      machines.insert(absent.machine);
  }
  return {machines.begin(), machines.end()};
}

}  // namespace optcache::reconcile
