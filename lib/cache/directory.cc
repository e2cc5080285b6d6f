#include "cache/directory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace optcache::cache {

DirectoryAnswer Directory::Ask(SampleId id, bool want_lease, MemberId asker, MonotonicTime now) {
  using Kind = DirectoryAnswer::Kind;
  const auto it = entries_.find(id);
  if (it != entries_.end()) {
    const Record& record = it->second;
    if (record.holder != 0) return {.kind = Kind::kHeld, .holder = record.holder};
    if (record.lease != 0 && now < record.lease_end) return {.kind = Kind::kWaiting};
  }
  if (!want_lease) return {.kind = Kind::kNobody};
  Record& record = entries_[id];
  record.lease = next_lease_++;
  Extend(id, record, asker, now);
  return {.kind = Kind::kLeased, .lease = record.lease};
}

void Directory::Extend(SampleId id, Record& record, MemberId asker, MonotonicTime now) {
  record.lease_end = now + lease_time_;
  lease_ends_.push_back({.end = record.lease_end, .lease = record.lease, .id = id, .asker = asker});
  ++listed_[asker];
}

void Directory::Gained(SampleId id, MemberId holder) {
  Record& record = entries_[id];
  record = {.holder = holder, .before = record.holder == holder ? record.before : record.holder};
}

void Directory::Lost(SampleId id, MemberId holder) {
  const auto it = entries_.find(id);
  if (it != entries_.end() && !Forget(holder, it->second)) entries_.erase(it);
}

// False: it had a holder, and has none any more.
bool Directory::Forget(MemberId holder, Record& record) {
  if (record.before == holder) record.before = 0;
  if (record.holder != holder || holder == 0) return true;
  record.holder = std::exchange(record.before, 0);
  return record.holder != 0;
}

bool Directory::Renew(SampleId id, LeaseId lease, MemberId asker, MonotonicTime now) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.lease != lease || lease == 0) return false;
  Extend(id, it->second, asker, now);
  return true;
}

void Directory::EndLease(SampleId id, LeaseId lease) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.lease != lease || lease == 0) return;
  if (it->second.holder != 0) {
    it->second.lease = 0;
  } else {
    entries_.erase(it);
  }
}

// All leases that have not run out are listed, so this costs nothing by sample.
std::size_t Directory::EndLeasesOf(MemberId member) {
  std::size_t ended = 0;
  for (const Listed& listed : lease_ends_) {
    if (listed.asker != member) continue;
    const auto it = entries_.find(listed.id);
    if (it == entries_.end() || it->second.lease != listed.lease) continue;
    EndLease(listed.id, listed.lease);
    ++ended;
  }
  return ended;
}

void Directory::ForgetMember(MemberId member) {
  for (auto it = entries_.begin(); it != entries_.end();)
    it = Forget(member, it->second) ? std::next(it) : entries_.erase(it);
}

void Directory::Sweep(MonotonicTime now) {
  for (; !lease_ends_.empty() && lease_ends_.front().end <= now; lease_ends_.pop_front()) {
    const auto it = entries_.find(lease_ends_.front().id);
    if (it != entries_.end() && it->second.holder == 0 && it->second.lease_end <= now)
      entries_.erase(it);
    const auto listed = listed_.find(lease_ends_.front().asker);
    if (--listed->second == 0) listed_.erase(listed);
  }
}

void Directory::VisitLessees(const std::function<void(MemberId)>& visit) const {
  for (const auto& [member, _] : listed_)
    visit(member);
}

std::size_t Directory::leases() const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const auto& entry) { return entry.second.lease != 0; }));
}

}  // namespace optcache::cache
