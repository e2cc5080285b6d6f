#include "coordinator/manifest_placement.h"

#include <algorithm>
#include <set>

namespace optcache::coordination {
namespace {

bool Holds(std::span<const MemberId> ascending, MemberId member) {
  return std::ranges::binary_search(ascending, member);
}

// Adds candidates that `wanted` picks, in their order, until there are `limit`.
template <typename F>
void Fill(std::span<const ManifestCandidate> candidates, std::size_t limit,
          std::set<MemberId>& chosen, F&& wanted) {
  for (const ManifestCandidate& candidate : candidates) {
    if (chosen.size() >= limit) return;
    if (wanted(candidate)) chosen.insert(candidate.member);
  }
}

}  // namespace

std::vector<MemberId> WhoShallHold(std::span<const ManifestCandidate> candidates,
                                   std::span<const MemberId> before) {
  std::set<MemberId> chosen;
  Fill(candidates, candidates.size(), chosen, [](const auto& c) { return c.placed; });
  Fill(candidates, kManifestCopies, chosen, [&](const auto& c) { return Holds(before, c.member); });
  Fill(candidates, kManifestCopies, chosen, [](const auto& c) { return c.holds; });
  Fill(candidates, kManifestCopies, chosen, [](const auto&) { return true; });
  return {chosen.begin(), chosen.end()};
}

std::vector<MemberId> WhomToAsk(std::span<const ManifestCandidate> candidates,
                                std::span<const MemberId> before) {
  std::set<MemberId> chosen;
  Fill(candidates, kHoldersToAsk, chosen,
       [&](const auto& c) { return c.holds && Holds(before, c.member); });
  Fill(candidates, kHoldersToAsk, chosen, [](const auto& c) { return c.holds; });
  return {chosen.begin(), chosen.end()};
}

void ManifestPlacement::Place(std::span<const ManifestCandidate> candidates, MonotonicTime now) {
  holders_total_ = static_cast<std::size_t>(
      std::ranges::count_if(candidates, [](const auto& candidate) { return candidate.holds; }));
  members_ = WhoShallHold(candidates, members_);
  holders_ = WhomToAsk(candidates, holders_);
  const bool missed = !candidates.empty() && holders_total_ == 0;
  if (!missed) missed_since_.reset();
  if (missed && !missed_since_) missed_since_ = now;
}

}  // namespace optcache::coordination
