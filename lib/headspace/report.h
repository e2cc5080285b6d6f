#pragma once

// What a measurement says.
//
// Two means, each with the interval that its parts allow (95 %): the step as it is, and the step
// whose samples are there at once. The difference is the headspace: no cache gains more. If it is
// not larger than its interval, there is none that could be told.
//
// The curve needs a model of what lies between. Samples that a cache has are taken for free, and
// all others for equally expensive, so that reading takes a time in proportion to the misses:
//
//   reading(h) = step now * (1 - h) / (1 - h0)         h: hit ratio, h0: that of the measured steps
//
// Where reading and computing overlap, as they do with workers or staging ahead, the slower of both
// is the step: max(free step, reading(h)). Where they do not overlap at all, they add up:
// free step + (step now - free step) * (1 - h) / (1 - h0). Both agree with both measurements; what
// is true lies between.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headspace/options.h"
#include "headspace/step_clock.h"

namespace optcache::headspace {

enum class State : std::uint8_t {
  kWaiting,    // for a loader, or still warming up
  kMeasuring,  // steps as they are
  kFree,       // steps whose samples are there at once
  kDone,
  kEndedEarly,  // the job has ended, or its samples fit no memory
};
std::string_view StateName(State state);
std::optional<State> StateOf(std::string_view name);

// What the ranks did that read here.
struct Seen {
  State state = State::kWaiting;
  std::string why;     // it has ended early
  std::string loader;  // the stream that is measured
  std::vector<const StepClock*> ranks;
  std::uint64_t announced_steps = 0;  // of each rank in the whole run; 0: not known
  std::uint64_t warmup_steps = 0;     // while none has warmed up: of the rank that is farthest
};

// Of one mean: it lies within so much of what was found, by what its parts say.
struct StepTime {
  double seconds = 0;
  double plus_minus = 0;
  std::uint64_t steps = 0;  // of each rank
  double samples = 0;       // in a step
  double bytes = 0;
  double waited = 0;                // from request to answer: seconds, on the way of a step or not
  std::optional<double> hit_ratio;  // nothing in free steps
};

struct Gain {
  double seconds = 0;  // of a step
  double plus_minus = 0;
  bool resolved = false;  // larger than what it may be off by
  double speedup = 1;
  double speedup_low = 1;
  std::optional<double> speedup_high;  // nothing: no bound was found
};

struct RunHours {
  std::uint64_t steps = 0;  // of each rank; 0: nobody knows
  bool announced = false;   // by the loader, not by who asked for this
  double hours_now = 0;
  double hours_free = 0;
  double hours_saved = 0;
};

struct WhatIf {
  double hit_ratio = 0;
  // Nothing where the measurement does not reach.
  std::optional<double> seconds;          // of a step, where reading and computing overlap
  std::optional<double> seconds_in_turn;  // ... where they do not
};

struct Report {
  State state = State::kWaiting;
  std::string message;  // a sentence for people
  std::string loader;
  std::uint32_t ranks = 0;
  Options options;
  // Of the rank that is least far.
  std::uint64_t measured_steps = 0;
  std::uint64_t free_steps = 0;
  // If state is kDone.
  std::optional<StepTime> now;
  std::optional<StepTime> free;
  std::optional<Gain> gain;
  std::optional<RunHours> run;
  std::vector<WhatIf> what_if;  // by rising hit ratio: tenths
};

Report MakeReport(const Seen& seen, const Options& options);

// A mean over the ranks' blocks.
StepTime TimeOf(const std::vector<const PhaseTimes*>& ranks);
Gain GainOf(const StepTime& now, const StepTime& free);
std::vector<WhatIf> WhatIfOf(const StepTime& now, const StepTime& free, const Gain& gain);

}  // namespace optcache::headspace
