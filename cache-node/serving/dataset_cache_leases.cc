// Leases: which reader has which, and how each goes back to its home, whichever side ends it.

#include <map>
#include <utility>

#include "cache-node/serving/dataset_cache.h"

namespace optcache::node {
namespace {

constexpr std::size_t kMaxGrants = 262'144;  // beyond it a miss comes without a lease

}  // namespace

// What the reader is told: the lease, or none where there are too many.
wire::LeaseId DatasetCache::Grant(const Read& read, wire::LeaseId lease, bool keep) {
  if (lease == 0) return 0;
  if (granted_.size() >= kMaxGrants) {
    unused_.leases.emplace_back(read.item.id, lease);
    return 0;
  }
  const ByteCount room = keep && disk_ ? SizeOf(read.item.id) : 0;
  granted_room_ += room;
  if (room >= wanted_room_) wanted_room_ = 0;
  granted_[lease] = {.client = read.from, .id = read.item.id, .room = room};
  ++leases_[read.from];
  return lease;
}

// The reader has gone before it was told.
void DatasetCache::GiveBack(wire::LeaseId lease) {
  const auto granted = granted_.find(lease);
  if (granted == granted_.end()) return;
  unused_.leases.emplace_back(granted->second.id, lease);
  ForgetGrant(granted);
}

void DatasetCache::ForgetGrant(std::unordered_map<wire::LeaseId, Granted>::iterator granted) {
  granted_room_ -= granted->second.room;
  const auto count = leases_.find(granted->second.client);
  if (--count->second == 0) leases_.erase(count);
  granted_.erase(granted);
}

std::size_t DatasetCache::leases(ClientId client) const {
  const auto found = leases_.find(client);
  return found == leases_.end() ? 0 : found->second;
}

void DatasetCache::OnClientGone(ClientId client, MonotonicTime now) {
  wire::LeaseUpdate ended{.dataset = config_.key, .event = wire::LeaseEvent::kFailed};
  for (const auto& [lease, grant] : granted_) {
    if (grant.client == client) ended.leases.emplace_back(grant.id, lease);
  }
  OnLeaseUpdate(client, ended, now);
}

void DatasetCache::OnLeaseUpdate(ClientId from, const wire::LeaseUpdate& update,
                                 MonotonicTime now) {
  wire::LeaseUpdate own{.dataset = config_.key, .event = update.event};
  for (const auto& [id, lease] : update.leases) {
    const auto granted = granted_.find(lease);
    if (granted == granted_.end() || granted->second.client != from || granted->second.id != id) {
      continue;
    }
    own.leases.emplace_back(id, lease);
    if (update.event != wire::LeaseEvent::kRenew) ForgetGrant(granted);
  }
  OnPeerLeaseUpdate(config_.self, own, now);
}

void DatasetCache::OnPeerLeaseUpdate(wire::MemberId member, const wire::LeaseUpdate& update,
                                     MonotonicTime now) {
  if (holdings_.homes().empty()) return;
  holdings_.Flush();  // who learns that a lease is done must know the holder first
  std::map<wire::MemberId, wire::LeaseUpdate> by_home;
  const auto send = [this](wire::MemberId home, wire::LeaseUpdate& leases) {
    effects_.Send(home, 0, leases, nullptr);
    leases.leases.clear();
  };
  for (const auto& [id, lease] : update.leases) {
    const wire::MemberId home = holdings_.homes().Home(id);
    if (home != config_.self) {
      auto [others, _] = by_home.try_emplace(
          home, wire::LeaseUpdate{.dataset = config_.key, .event = update.event, .leases = {}});
      others->second.leases.emplace_back(id, lease);
      if (others->second.leases.size() == wire::kMaxItems) send(home, others->second);
    } else if (update.event == wire::LeaseEvent::kRenew) {
      directory_.Renew(id, lease, member, now);
    } else {
      directory_.EndLease(id, lease);
    }
  }
  for (auto& [home, leases] : by_home) {
    if (!leases.leases.empty()) send(home, leases);
  }
}

void DatasetCache::GiveBackLeases(const wire::LookupReply& reply, MonotonicTime now) {
  wire::LeaseUpdate update{.dataset = config_.key, .event = wire::LeaseEvent::kFailed};
  for (const wire::LookupItem& item : reply.items) {
    if (item.found == wire::Found::kLeased && item.id < config_.sizes.count()) {
      update.leases.emplace_back(item.id, item.lease);
    }
  }
  if (!update.leases.empty()) OnPeerLeaseUpdate(config_.self, update, now);
}

}  // namespace optcache::node
