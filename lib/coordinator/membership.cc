#include "coordinator/membership.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace optcache::coordination {
namespace {

// What a node may make a coordinator go on from. Ids never get there by themselves, and there is as
// much room again above.
constexpr MemberId kMaxLearnedMember = MemberId{1} << 30U;

}  // namespace

// A node that was started again is another member: it holds nothing of what the old one held.
Result<Membership::Admission> Membership::Admit(const Report& report, bool learning) {
  if (report.member <= kMaxLearnedMember) next_ = std::max(next_, report.member + 1);
  const MemberEntry* const known = Named(report.node);
  if (known != nullptr) {
    if (report.incarnation == known->incarnation) return Admission{.member = known->member.id};
    if (report.incarnation < known->incarnation) {
      return Error(Code::kConflict, "node " + report.node + " has been started again since");
    }
  }
  if (known == nullptr && entries_.size() >= kMaxMembers) {
    return Error(Code::kResourceExhausted,
                 "there are " + std::to_string(kMaxMembers) + " members already");
  }
  ASSIGN_OR_RETURN(const MemberId id, IdFor(report, learning));
  Admission admission{.member = id};
  if (known != nullptr) {
    admission.gone = known->member.id;
    Remove(known->member.id);
  }
  MemberEntry& entry = entries_[id];
  names_[report.node] = id;
  entry.member = {.id = id, .name = report.node, .address = {}, .capacity = 0};
  entry.incarnation = report.incarnation;
  return admission;
}

// What a successor's predecessor has given is kept; anything else is new, and above all ids that
// may still be reported.
Result<MemberId> Membership::IdFor(const Report& report, bool learning) {
  if (!learning) return NewId();
  if (report.member == 0 || report.member > kMaxLearnedMember) {
    return Error(Code::kUnavailable,
                 "this coordinator has just begun and learns which members there are");
  }
  if (entries_.contains(report.member)) {
    return Error(Code::kUnavailable,
                 "member " + std::to_string(report.member) + " is another node already");
  }
  return report.member;
}

MemberId Membership::NewId() {
  while (next_ == 0 || entries_.contains(next_))
    ++next_;
  return next_++;
}

bool Membership::Take(MemberId id, const Report& report, MonotonicTime now) {
  MemberEntry& entry = entries_.at(id);
  entry.heard = now;
  entry.applied = report.applied;
  entry.metrics = report.metrics;
  Member member{.id = id,
                .name = report.node,
                .address = report.address,
                .capacity = report.leaving ? 0 : report.capacity,
                .disk = report.leaving ? 0 : report.disk,
                .manifest_url = report.manifest_url,
                .leaving = report.leaving};
  std::vector<std::string> manifests = report.manifests;
  std::ranges::sort(manifests);
  if (member == entry.member && manifests == entry.manifests) return false;
  entry.member = std::move(member);
  entry.manifests = std::move(manifests);
  return true;
}

std::vector<MemberId> Membership::RemoveSilent(Duration silence, MonotonicTime now) {
  std::vector<MemberId> gone;
  for (const auto& [id, entry] : entries_) {
    if (now - entry.heard > silence) gone.push_back(id);
  }
  for (const MemberId id : gone)
    Remove(id);
  return gone;
}

void Membership::Remove(MemberId member) {
  const auto found = entries_.find(member);
  CHECK(found != entries_.end());
  names_.erase(found->second.member.name);
  entries_.erase(found);
}

void Membership::Forgive(Duration pause) {
  for (auto& [id, entry] : entries_)
    entry.heard += pause;
}

const MemberEntry* Membership::Named(std::string_view node) const {
  const auto found = names_.find(node);
  return found == names_.end() ? nullptr : &entries_.at(found->second);
}

}  // namespace optcache::coordination
