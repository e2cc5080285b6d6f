#include "sidecar/fetch/lease_tracker.h"

#include <algorithm>

namespace optcache::sidecar {

void LeaseTracker::Hold(wire::DatasetKey dataset, SampleId id, wire::LeaseId lease) {
  if (lease != 0) held_[{dataset, id}] = lease;
}

void LeaseTracker::Spend(wire::DatasetKey dataset, SampleId id, wire::LeaseId lease) {
  const auto held = held_.find({dataset, id});
  if (held != held_.end() && held->second == lease) held_.erase(held);
}

void LeaseTracker::End(wire::DatasetKey dataset, SampleId id, wire::LeaseId lease,
                       wire::LeaseEvent how) {
  if (lease == 0) return;
  Spend(dataset, id, lease);
  if (node_.connected()) owed_[{dataset, how}].emplace_back(id, lease);
}

void LeaseTracker::Flush() {
  for (const auto& [what, leases] : owed_)
    SendAll(what.first, what.second, leases);
  owed_.clear();
}

void LeaseTracker::Renew() {
  std::map<wire::DatasetKey, std::vector<Lease>> by_dataset;
  for (const auto& [sample, lease] : held_) {
    by_dataset[sample.first].emplace_back(sample.second, lease);
  }
  for (const auto& [dataset, leases] : by_dataset) {
    SendAll(dataset, wire::LeaseEvent::kRenew, leases);
  }
}

void LeaseTracker::Clear() {
  held_.clear();
  owed_.clear();
}

void LeaseTracker::SendAll(wire::DatasetKey dataset, wire::LeaseEvent event,
                           const std::vector<Lease>& leases) {
  for (std::size_t begin = 0; begin < leases.size(); begin += wire::kMaxItems) {
    const std::size_t end = std::min(leases.size(), begin + wire::kMaxItems);
    wire::LeaseUpdate update{.dataset = dataset, .event = event, .leases = {}};
    update.leases.assign(leases.begin() + static_cast<std::ptrdiff_t>(begin),
                         leases.begin() + static_cast<std::ptrdiff_t>(end));
    node_.Send(0, update);
  }
}

}  // namespace optcache::sidecar
