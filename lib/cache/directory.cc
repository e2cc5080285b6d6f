#include "cache/directory.h"

#include <algorithm>

namespace optcache::cache {

DirectoryAnswer Directory::Ask(SampleId id, bool want_lease, MonotonicTime now) {
  using Kind = DirectoryAnswer::Kind;
  const auto it = entries_.find(id);
  if (it != entries_.end()) {
    const Record& record = it->second;
    if (record.held) return {.kind = Kind::kHeld, .holder = record.holder};
    if (record.lease != 0 && now < record.lease_end) return {.kind = Kind::kWaiting};
  }
  if (!want_lease) return {.kind = Kind::kNobody};
  Record& record = entries_[id];
  record.lease = next_lease_++;
  Extend(id, record, now);
  return {.kind = Kind::kLeased, .lease = record.lease};
}

void Directory::Extend(SampleId id, Record& record, MonotonicTime now) {
  record.lease_end = now + lease_time_;
  lease_ends_.emplace_back(record.lease_end, id);
}

void Directory::Gained(SampleId id, MemberId holder) {
  entries_[id] = Record{.holder = holder, .held = true};
}

void Directory::Lost(SampleId id, MemberId holder) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !it->second.held || it->second.holder != holder) return;
  entries_.erase(it);
}

bool Directory::Renew(SampleId id, LeaseId lease, MonotonicTime now) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.lease != lease || lease == 0) return false;
  Extend(id, it->second, now);
  return true;
}

void Directory::EndLease(SampleId id, LeaseId lease) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.lease != lease || lease == 0) return;
  if (it->second.held) {
    it->second.lease = 0;
  } else {
    entries_.erase(it);
  }
}

void Directory::ForgetMember(MemberId member) {
  std::erase_if(entries_, [member](const auto& entry) {
    return entry.second.held && entry.second.holder == member;
  });
}

void Directory::Sweep(MonotonicTime now) {
  for (; !lease_ends_.empty() && lease_ends_.front().first <= now; lease_ends_.pop_front()) {
    const auto it = entries_.find(lease_ends_.front().second);
    if (it != entries_.end() && !it->second.held && it->second.lease_end <= now) entries_.erase(it);
  }
}

std::size_t Directory::leases() const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const auto& entry) { return entry.second.lease != 0; }));
}

}  // namespace optcache::cache
