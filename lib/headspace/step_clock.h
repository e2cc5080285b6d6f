#pragma once

// One rank on its way through a measurement.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/clock.h"
#include "headspace/options.h"

namespace optcache::headspace {

enum class Phase : std::uint8_t {
  kWarmUp,
  kDraining,   // until what was staged at the start is used up, which would look like a fast store
  kMeasured,   // samples come as always
  kGathering,  // the same; some of them are held for what follows
  kFree,       // samples are there at once: those that are held, again and again
  kDone,       // as always, to the end of the run
};

// Steps are counted in this many parts, in whose means one sees how far the mean of all can be
// trusted.
inline constexpr std::size_t kBlocks = 10;
// Steps whose samples are held for the free ones.
inline constexpr std::uint32_t kGatherSteps = 16;

// What was seen in one phase.
struct PhaseTimes {
  std::array<Duration, kBlocks> time{};
  std::array<std::uint64_t, kBlocks> steps{};
  std::uint64_t samples = 0;  // handed out in this phase, their bytes, and the number of answers
  ByteCount bytes = 0;
  std::uint64_t answers = 0;
  std::uint64_t hits = 0;  // samples that came from a node
  Duration waited{};       // from question to answer

  std::uint64_t all_steps() const;
};

// A request of the rank's loader.
struct Ask {
  MonotonicTime at;
  std::uint64_t pass = 0;
  // Requests that its workers may send before the first is consumed, as far as is known.
  std::uint32_t ahead = 0;
  // What may have been staged before, in requests.
  std::uint64_t staged_max = 0;
};

struct Answer {
  std::uint64_t samples = 0;
  std::uint64_t hits = 0;
  ByteCount bytes = 0;
  Duration waited{};
};

// A step is the time from one request to the next. In the long run there are as many requests as
// steps, whatever the number of workers; after a change, and when a pass begins, workers ask faster
// than batches are consumed until their queue is full. So some steps are left out there, and so are
// the time between two passes and what the rank does while it reads another loader.
class StepClock {
 public:
  explicit StepClock(const Options& options) : options_(options) {}

  // The phase in which this request is to be answered.
  Phase OnAsk(const Ask& ask);
  // Another loader of the job has begun a pass, a validation perhaps: training stands still.
  void Interrupt() { interrupted_ = true; }
  // A request of the present phase was answered.
  void OnAnswer(const Answer& answer);
  // Nothing more is measured.
  void Finish() { phase_ = Phase::kDone; }

  Phase phase() const { return phase_; }
  // Requests so far that are left out at the start, and how many there will be, about.
  std::uint64_t left_out() const;
  std::uint64_t left_out_in_all() const;
  const PhaseTimes& measured() const { return measured_; }
  const PhaseTimes& free() const { return free_; }

 private:
  void Enter(Phase phase);
  void Count(Duration step);

  Options options_;
  Phase phase_ = Phase::kWarmUp;
  std::uint64_t asks_ = 0;      // in phases that end after some
  std::uint64_t to_leave_ = 0;  // steps
  bool interrupted_ = false;    // since the last request
  std::optional<Ask> last_;
  PhaseTimes measured_;
  PhaseTimes free_;
};

}  // namespace optcache::headspace
