#pragma once

// Which nodes are members, under which ids, and what each of them is and offers.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordination/state.h"

namespace optcache::coordination {

struct MemberEntry {
  Member member;
  std::string metrics;
  std::uint64_t incarnation = 0;
  MonotonicTime heard;
  Version applied;
  std::vector<std::string> manifests;  // ascending
};

// Never gives an id twice. Not thread-safe: a value with one owner.
class Membership {
 public:
  using Entries = std::map<MemberId, MemberEntry>;
  struct Admission {
    MemberId member = 0;
    std::optional<MemberId> gone;  // the run of the node before this one, which was a member
  };

  // The member that reports, a new one if need be. While its owner is `learning`, only nodes are
  // admitted that say which member they are. kConflict: the node has been started again since.
  // kResourceExhausted: too many members. kUnavailable: not while learning, report again.
  Result<Admission> Admit(const Report& report, bool learning);
  // What a member says of itself. True: it is or offers something else than before.
  bool Take(MemberId member, const Report& report, MonotonicTime now);
  // Removes those that have said nothing for longer than `silence`; returns them.
  std::vector<MemberId> RemoveSilent(Duration silence, MonotonicTime now);
  // Nobody listened for this long: that was not the members' silence.
  void Forgive(Duration pause);

  const Entries& entries() const { return entries_; }
  // nullptr: that node is no member.
  const MemberEntry* Named(std::string_view node) const;

 private:
  Result<MemberId> IdFor(const Report& report, bool learning);
  MemberId NewId();
  void Remove(MemberId member);

  MemberId next_ = 1;
  Entries entries_;
  std::map<std::string, MemberId, std::less<>> names_;  // of entries_
};

}  // namespace optcache::coordination
