#pragma once

// A home node's knowledge of its samples: who holds each, and who may read it from the store now.
//
// Holder and lease together make single flight over the cluster: the first that asks for a sample
// nobody holds gets the lease, the others wait until it is held or the lease ends. A lease that is
// not renewed ends by itself, so a dead reader costs its life span and no more; those that were
// granted through a member end at once when that is seen to be gone.
//
// The directory is a hint: a wrong entry costs a miss or a second store read, never wrong bytes.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "cache/home_map.h"

namespace optcache::cache {

using LeaseId = std::uint64_t;

struct DirectoryAnswer {
  enum class Kind : std::uint8_t { kHeld, kLeased, kWaiting, kNobody };
  Kind kind = Kind::kNobody;
  MemberId holder = 0;
  LeaseId lease = 0;
};

// Not thread-safe: the node's event loop owns it.
class Directory {
 public:
  // Leases are numbered from `first_lease`: members must not share numbers.
  Directory(Duration lease_time, LeaseId first_lease)
      : lease_time_(lease_time), next_lease_(first_lease) {}

  // Who has `id`? Nobody and `want_lease`: a reader at `asker` may read it until its lease ends.
  DirectoryAnswer Ask(SampleId id, bool want_lease, MemberId asker, MonotonicTime now);

  // The newest holder is the one that is asked. The one before is remembered: when the newest has
  // lost its copy, that is found again.
  void Gained(SampleId id, MemberId holder);
  // Forgets `holder` if it still is one of those known.
  void Lost(SampleId id, MemberId holder);

  // False when the lease is not the present one any more. `asker`: the member that renews it.
  bool Renew(SampleId id, LeaseId lease, MemberId asker, MonotonicTime now);
  void EndLease(SampleId id, LeaseId lease);
  // A member cannot be reached: nobody will end the leases that were granted through it. How many
  // end now.
  std::size_t EndLeasesOf(MemberId member);
  // Members through which leases were granted that may not have run out; perhaps they have ended.
  void VisitLessees(const std::function<void(MemberId)>& visit) const;

  // A member left: what it held is held by nobody.
  void ForgetMember(MemberId member);
  // This node is no longer the home of these: keeps what `is_home` accepts.
  template <typename Predicate>
  void KeepOnly(Predicate is_home) {
    std::erase_if(entries_, [&](const auto& entry) { return !is_home(entry.first); });
  }
  // Drops leases that ended; call now and then.
  void Sweep(MonotonicTime now);

  std::size_t samples() const { return entries_.size(); }
  std::size_t leases() const;

 private:
  struct Record {
    MemberId holder = 0;  // 0: none
    MemberId before = 0;  // that held it when `holder` came, 0: none
    LeaseId lease = 0;    // 0: none
    MonotonicTime lease_end{};
  };

  struct Listed {
    MonotonicTime end{};
    LeaseId lease = 0;
    SampleId id = 0;
    MemberId asker = 0;
  };

  static bool Forget(MemberId holder, Record& record);
  void Extend(SampleId id, Record& record, MemberId asker, MonotonicTime now);

  Duration lease_time_;
  LeaseId next_lease_;
  std::unordered_map<SampleId, Record> entries_;
  // When leases end, the first in front; a renewed one is listed again.
  std::deque<Listed> lease_ends_;
  std::map<MemberId, std::size_t> listed_;  // of those, by asker
};

}  // namespace optcache::cache
