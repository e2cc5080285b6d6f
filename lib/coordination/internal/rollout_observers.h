#pragma once

// Whom the figures of a rollout are of.

#include <string>
#include <string_view>

#include "coordination/rollout.h"

namespace optcache::coordination::internal {

// Digests. A node that comes holds nothing yet, and what one held that goes is read again; so it is
// with one that starts again, in another life, which gets the same share, though. Other jobs share
// otherwise.
struct Observers {
  std::string nodes;
  std::string lives;
  std::string jobs;
  friend bool operator==(const Observers&, const Observers&) = default;
};

Observers ObserversOf(const RolloutInputs& inputs);
// As RolloutState keeps them: "NODES-LIVES-JOBS". What is missing of a text is empty.
std::string TextOf(const Observers& observers);
Observers ObserversIn(std::string_view text);

// Sets `previous`, by the nodes and jobs that there are now.
void NotePrevious(RolloutState& state, const ObservedEpoch& observed, const RolloutInputs& inputs);
void ForgetPrevious(RolloutState& state);
// The same, where each job that reads has ended a pass of the revision in force alone. Its first
// one does not count: it goes by what lay there before.
void ObserveInForce(RolloutState& state, const RolloutInputs& inputs);
// In Observe: has each job that reads ended an epoch that counts?
bool AllAreCounted(const RolloutState& state, const RolloutInputs& inputs);
// In Observe: is `previous` of the nodes and jobs that there are now, and all of these are counted?
// Those that went and came back are the same.
bool IsComparable(const RolloutState& state, const RolloutInputs& inputs);

// A digest of the streams that read, each life of a job for itself; empty: nobody does, or some are
// about to.
std::string JobsOf(const RolloutInputs& inputs);

}  // namespace optcache::coordination::internal
