#pragma once

// Who keeps the manifest of a dataset: the members that hold its samples, and enough others that
// it survives machines. Pure; the choice before is an input, so that it stays while it is good.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "coordination/state.h"

namespace optcache::coordination {

inline constexpr std::size_t kManifestCopies = 3;  // at least, where there are as many members
inline constexpr std::size_t kHoldersToAsk = 8;    // named in a state; more would only grow it

// A member that can give manifests to others.
struct ManifestCandidate {
  MemberId member = 0;
  bool placed = false;  // holds samples of the dataset
  bool holds = false;   // reports the manifest
};

// All placed members; while they are fewer than kManifestCopies others too: first those chosen
// before, then those that hold it, then by id. Ascending.
std::vector<MemberId> WhoShallHold(std::span<const ManifestCandidate> candidates,
                                   std::span<const MemberId> before);

// At most kHoldersToAsk that hold it: first those chosen before, then by id. Ascending.
std::vector<MemberId> WhomToAsk(std::span<const ManifestCandidate> candidates,
                                std::span<const MemberId> before);

// What was chosen last for one manifest. Not thread-safe: a value with one owner.
class ManifestPlacement {
 public:
  // Of the members there are now; candidates ascend by member.
  void Place(std::span<const ManifestCandidate> candidates, MonotonicTime now);

  const std::vector<MemberId>& members() const { return members_; }  // WhoShallHold
  const std::vector<MemberId>& holders() const { return holders_; }  // WhomToAsk
  std::size_t holders_total() const { return holders_total_; }
  // Since when there are candidates and none holds it; nullopt: one does.
  std::optional<MonotonicTime> missed_since() const { return missed_since_; }

 private:
  std::vector<MemberId> members_;
  std::vector<MemberId> holders_;
  std::size_t holders_total_ = 0;
  std::optional<MonotonicTime> missed_since_;
};

}  // namespace optcache::coordination
