#pragma once

// What the nodes of a rollout have said, looked at by the state that it is in.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/rollout.h"

namespace optcache::coordination::internal {

// How far a node is with the trials that Prepare asks for.
struct Derivation {
  bool update = false;    // it has derived the update
  bool complete = false;  // that, and what it is compared with
  std::string error;      // why it could not
};
Derivation DerivationOf(const RolloutNode& node, const RolloutState& state);

// Has some node derived both trials of Prepare from the same inputs?
bool SomeHaveBoth(const RolloutState& state, const RolloutInputs& inputs);

// Is the update held because it is predicted to be worse, by the newest inputs from which a node
// has derived both? Meaningful when all nodes have derived.
bool IsHeldAsWorse(const RolloutState& state, const RolloutInputs& inputs);

// Have all trials of Prepare that nodes tell of been derived from the same inputs?
bool WentBySameInputs(const RolloutState& state, const RolloutInputs& inputs);

// Of nodes that went by the same inputs, one with the digest that fewest have; nullopt: they agree.
std::optional<std::string> Disagreement(const RolloutState& state, const RolloutInputs& inputs);

// Have nodes been waited for beyond the deadline?
bool IsLate(const RolloutState& state, const RolloutInputs& inputs);

// Has an epoch's end been awaited beyond the deadline? A job that starts again and again, or hangs,
// ends none.
bool IsEpochLate(const RolloutState& state, const RolloutInputs& inputs);

// Has its epoch not ended by the deadline, and is it still in that one?
bool IsOverrun(const ReadingStream& stream, const RolloutState& state);

// Some of them, for people.
std::string NamesOf(const std::vector<ReadingStream>& streams);

// Has the order to follow `state.activated`, if it has derived that.
bool IsOrdered(const RolloutNode& node, const RolloutState& state);

// Where all nodes are to follow the revision in force: does one still follow another?
bool SomeStray(const RolloutState& state, const RolloutInputs& inputs);

struct Activation {
  std::uint64_t ordered = 0;   // nodes that shall follow the update
  std::uint64_t followed = 0;  // of those, that do
  std::uint64_t ready = 0;     // of those, that have derived the newest plan
  std::uint64_t goal = 0;      // that shall in the end
};
Activation ActivationOf(const RolloutState& state, const RolloutInputs& inputs);

}  // namespace optcache::coordination::internal
