#pragma once

// What the figures of a rollout are of, and which of them may be compared.

#include <string>
#include <string_view>
#include <utility>

#include "coordinator/rollout.h"

namespace optcache::coordination::internal {

// The same, but for rounding: it is divided again all the time.
bool IsSameMemory(ByteCount one, ByteCount other);

// Digests, and bytes. A node that comes holds nothing yet, and what one held that goes is read
// again; so it is with one that starts again, in another run, which gets the same share, though.
// Other jobs share otherwise, and so do jobs that read another manifest; other memory holds more or
// less.
struct Observers {
  std::string nodes;
  std::string incarnations;
  std::string jobs;
  ByteCount memory = 0;
  friend bool operator==(const Observers&, const Observers&) = default;
};

Observers ObserversOf(const RolloutInputs& inputs);
// Those that a forecast is for: streams that are whole and whose order is known, and jobs that a
// revision names and that do not read.
Observers ForecastObserversOf(const RolloutInputs& inputs);
// As RolloutState keeps them: "NODES-RUNS-JOBS-MEMORY". What is missing of a text is empty.
std::string TextOf(const Observers& observers);
Observers ObserversIn(std::string_view text);

// Are figures of one of them comparable with figures of the other? A node that has started again is
// the same, and so is memory that was only rounded in another way.
bool AreAlike(const Observers& one, const Observers& other);
// Do nodes hold as much of what they have read as before? Not if one has started again.
bool HoldAlike(const Observers& one, const Observers& other);
// Would it be predicted for the same now?
bool IsPredictedForNow(const RolloutState& state, const RolloutInputs& inputs);
// Is it for all that read now, in orders that are known, and for no others? Else it is not
// comparable with what they read.
bool IsPredictedOfReaders(const RolloutState& state, const RolloutInputs& inputs);

// Are `sums` of the latest pass of each job that reads, and of no others, each of the revision in
// force alone and begun with what there is now? A first one is none: it goes by what lay there
// before.
bool AreOfReaders(const PassSums& sums, const RolloutState& state, const RolloutInputs& inputs);

// Sets `previous`, by what there is now.
void NotePrevious(RolloutState& state, const ObservedEpoch& observed, const RolloutInputs& inputs);
void ForgetPrevious(RolloutState& state);
// The same by such passes, where each job that reads has ended one.
void ObserveInForce(RolloutState& state, const RolloutInputs& inputs);
// In Observe, and until another epoch ends: has each job that reads ended one that counts?
bool AllAreCounted(const RolloutState& state, const RolloutInputs& inputs);
// In Observe: are `sums` of what there is now, and of all of it?
bool IsOfOneKind(const RolloutState& state, const RolloutInputs& inputs);
// In Observe: may `sums` be compared with `previous`? Those that went and came back are the same.
bool IsComparable(const RolloutState& state, const RolloutInputs& inputs);

// In Observe: what was predicted of `sums`, for one pass of each of `streams`; nullopt: nothing
// that may be compared.
std::optional<EpochNumbers> PredictedOf(const RolloutState& state, const RolloutInputs& inputs,
                                        std::uint64_t streams);

// Reason and message, of what was observed; empty: nothing is wrong.
std::pair<std::string, std::string> FaultOf(const RolloutState& state, const RolloutInputs& inputs,
                                            const ObservedEpoch& observed);

// The forecast that is to be asked for now; nullopt: `state` has it, or will.
std::optional<JobsForecast> ForecastToAskFor(const RolloutState& state,
                                             const RolloutInputs& inputs);

}  // namespace optcache::coordination::internal
