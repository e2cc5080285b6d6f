#include "headspace/step_clock.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace optcache::headspace {
namespace {

// Beyond what workers ask ahead, as the last of those are still on their way.
constexpr std::uint64_t kLeaveMin = 4;

}  // namespace

std::uint64_t PhaseTimes::all_steps() const {
  return std::accumulate(steps.begin(), steps.end(), std::uint64_t{0});
}

std::uint64_t StepClock::left_out() const {
  if (phase_ == Phase::kWarmUp) return std::min<std::uint64_t>(asks_, options_.warmup_steps);
  if (phase_ == Phase::kDraining) return options_.warmup_steps + asks_;
  return left_out_in_all();
}

std::uint64_t StepClock::left_out_in_all() const {
  return options_.warmup_steps + (last_ ? last_->staged_max : 0);
}

Phase StepClock::OnAsk(const Ask& ask) {
  const std::uint64_t fill = std::uint64_t{ask.ahead} + kLeaveMin;
  if (!last_ || last_->pass != ask.pass) to_leave_ = std::max(to_leave_, fill);
  // Workers fill their queue meanwhile, and it is used up afterwards.
  if (std::exchange(interrupted_, false)) to_leave_ = std::max(to_leave_, fill + ask.ahead);
  const bool counts = to_leave_ == 0;
  if (!counts) --to_leave_;
  switch (phase_) {
    case Phase::kWarmUp:
      if (asks_++ >= options_.warmup_steps)
        Enter(ask.staged_max > 0 ? Phase::kDraining : Phase::kMeasured);
      break;
    case Phase::kDraining:
      if (asks_++ >= ask.staged_max) Enter(Phase::kMeasured);
      break;
    case Phase::kGathering:
      if (++asks_ > kGatherSteps) {
        Enter(Phase::kFree);
        // Other ranks of the job change a little earlier or later.
        to_leave_ = fill + ask.ahead;
      }
      break;
    case Phase::kMeasured:
      if (counts) Count(ask.at - last_->at);
      if (measured_.all_steps() >= options_.steps) Enter(Phase::kGathering);
      break;
    case Phase::kFree:
      if (counts) Count(ask.at - last_->at);
      if (free_.all_steps() >= options_.free_steps) Enter(Phase::kDone);
      break;
    case Phase::kDone:
      break;
  }
  last_ = ask;
  return phase_;
}

void StepClock::Enter(Phase phase) {
  phase_ = phase;
  asks_ = phase == Phase::kGathering || phase == Phase::kDraining ? 1 : 0;
}

void StepClock::Count(Duration step) {
  PhaseTimes& times = phase_ == Phase::kFree ? free_ : measured_;
  const std::uint64_t wanted = phase_ == Phase::kFree ? options_.free_steps : options_.steps;
  const std::uint64_t block = times.all_steps() * kBlocks / wanted;
  times.time.at(block) += step;
  ++times.steps.at(block);
}

void StepClock::OnAnswer(const Answer& answer) {
  if (phase_ != Phase::kMeasured && phase_ != Phase::kFree) return;
  PhaseTimes& times = phase_ == Phase::kFree ? free_ : measured_;
  ++times.answers;
  times.samples += answer.samples;
  times.bytes += answer.bytes;
  times.hits += answer.hits;
  times.waited += answer.waited;
}

}  // namespace optcache::headspace
