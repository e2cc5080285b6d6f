// Makes the report of measured times: means, their intervals, the gain, and the curve.
//
// The idea: a measurement has ten blocks. The mean of a block over all ranks is one sample, and the
// interval of the whole mean comes from the spread of these ten by Student's t. The gain is the
// difference of two such means, and its interval is the root of the sum of squares; the bounds of
// the speed-up follow from the ends of that interval, and the upper one is left out where it would
// be infinite.
//
// WhatIfOf says only what follows from the measurement: where misses were too few, or no gain was
// resolved, points are missing. Sentences for people are made last, from the finished numbers.

#include "headspace/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace optcache::headspace {
namespace {

// Two-sided, 95 %, as for the mean of ten parts (Student's t, nine degrees of freedom).
constexpr double kQuantile = 2.262;
constexpr double kSecondsPerHour = 3600;
constexpr int kTenths = 10;
// With fewer misses nothing can be said of what one costs.
constexpr double kMissesMin = 0.01;
constexpr std::array<std::string_view, 5> kStateNames = {"waiting", "measuring", "free", "done",
                                                         "ended early"};

double PerAnswer(double sum, std::uint64_t answers) {
  return answers == 0 ? 0 : sum / static_cast<double>(answers);
}

// Mean of that block over the ranks; nothing if a rank has no step in it.
std::optional<double> BlockMean(const std::vector<const PhaseTimes*>& ranks, std::size_t block) {
  double sum = 0;
  for (const PhaseTimes* rank : ranks) {
    if (rank->steps[block] == 0) return std::nullopt;
    sum += ToSeconds(rank->time[block]) / static_cast<double>(rank->steps[block]);
  }
  return sum / static_cast<double>(ranks.size());
}

RunHours RunOf(const Seen& seen, const Options& options, const StepTime& now,
               const StepTime& free) {
  RunHours run{.steps = options.run_steps == 0 ? seen.announced_steps : options.run_steps,
               .announced = options.run_steps == 0 && seen.announced_steps != 0};
  const double steps = static_cast<double>(run.steps);
  run.hours_now = steps * now.seconds / kSecondsPerHour;
  run.hours_free = steps * free.seconds / kSecondsPerHour;
  run.hours_saved = run.hours_now - run.hours_free;
  return run;
}

std::string Conclusion(const StepTime& now, const StepTime& free, const Gain& gain) {
  if (gain.resolved) {
    return fmt::format(
        "A step takes {:.4g} s, and {:.4g} s if its samples are there at once: no cache makes this "
        "training more than {:.2f} times as fast.",
        now.seconds, free.seconds, gain.speedup);
  }
  if (gain.seconds < -gain.plus_minus) {
    return fmt::format(
        "A step took {:.4g} s, and {:.4g} s when its samples were there at once: something else "
        "has changed meanwhile. Measure again, with more steps.",
        now.seconds, free.seconds);
  }
  return fmt::format(
      "No gain can be told: a step takes {:.4g} s, with samples there at once or not, and the "
      "difference is within {:.2g} s. More steps tell smaller gains.",
      now.seconds, gain.plus_minus);
}

std::string LeftOut(const StepClock& rank) {
  return fmt::format("Leaving out step {} of about {}: their samples may have been staged before.",
                     rank.left_out(), rank.left_out_in_all());
}

std::string MeasuredSome(const Report& report) {
  return fmt::format("Measured {} of {} steps.", report.measured_steps, report.options.steps);
}

std::string Progress(const Report& report, const Seen& seen) {
  const Options& wanted = report.options;
  switch (report.state) {
    case State::kWaiting:
      if (seen.warmup_steps == 0) {
        return "No loader has asked for a batch yet: one is measured that reads by "
               "optcache.Dataset and is attached (optcache.torch.attach).";
      }
      return fmt::format("A loader is attached, and has made {} of {} warm-up steps.",
                         seen.warmup_steps, wanted.warmup_steps);
    case State::kMeasuring:
      for (const StepClock* rank : seen.ranks) {
        if (rank->phase() == Phase::kDraining) return LeftOut(*rank);
      }
      return MeasuredSome(report);
    case State::kEndedEarly:
      if (report.measured_steps < wanted.steps) return MeasuredSome(report);
      [[fallthrough]];
    default:
      return fmt::format("Measured all {} steps, and {} of {} whose samples are there at once.",
                         wanted.steps, report.free_steps, wanted.free_steps);
  }
}

}  // namespace

std::string_view StateName(State state) {
  return kStateNames.at(static_cast<std::size_t>(state));
}

std::optional<State> StateOf(std::string_view name) {
  const auto found = std::ranges::find(kStateNames, name);
  if (found == kStateNames.end()) return std::nullopt;
  return static_cast<State>(found - kStateNames.begin());
}

StepTime TimeOf(const std::vector<const PhaseTimes*>& ranks) {
  StepTime time;
  std::vector<double> means;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    if (const auto mean = BlockMean(ranks, block)) means.push_back(*mean);
  }
  if (means.empty()) return time;
  const auto count = static_cast<double>(means.size());
  for (const double mean : means)
    time.seconds += mean / count;
  double squares = 0;
  for (const double mean : means)
    squares += (mean - time.seconds) * (mean - time.seconds);
  if (means.size() > 1) time.plus_minus = kQuantile * std::sqrt(squares / (count - 1) / count);
  PhaseTimes sum;
  time.steps = ranks.front()->all_steps();
  for (const PhaseTimes* rank : ranks) {
    time.steps = std::min(time.steps, rank->all_steps());
    sum.answers += rank->answers;
    sum.samples += rank->samples;
    sum.bytes += rank->bytes;
    sum.hits += rank->hits;
    sum.waited += rank->waited;
  }
  time.samples = PerAnswer(static_cast<double>(sum.samples), sum.answers);
  time.bytes = PerAnswer(static_cast<double>(sum.bytes), sum.answers);
  time.waited = PerAnswer(ToSeconds(sum.waited), sum.answers);
  if (sum.samples > 0)
    time.hit_ratio = static_cast<double>(sum.hits) / static_cast<double>(sum.samples);
  return time;
}

Gain GainOf(const StepTime& now, const StepTime& free) {
  Gain gain{.seconds = now.seconds - free.seconds,
            .plus_minus = std::hypot(now.plus_minus, free.plus_minus),
            .speedup_high = std::nullopt};
  gain.resolved = gain.seconds > gain.plus_minus;
  const auto speedup = [&now](double saved) { return now.seconds / (now.seconds - saved); };
  if (now.seconds <= 0 || free.seconds <= 0) return gain;
  gain.speedup = speedup(gain.seconds);
  gain.speedup_low = speedup(gain.seconds - gain.plus_minus);
  if (gain.seconds + gain.plus_minus < now.seconds)
    gain.speedup_high = speedup(gain.seconds + gain.plus_minus);
  return gain;
}

std::vector<WhatIf> WhatIfOf(const StepTime& now, const StepTime& free, const Gain& gain) {
  const double hits_now = now.hit_ratio.value_or(0);
  const double misses_now = 1 - hits_now;
  const bool cost_known = gain.resolved && misses_now >= kMissesMin;
  std::vector<WhatIf> points;
  for (int tenth = 0; tenth <= kTenths; ++tenth) {
    WhatIf point{.hit_ratio = static_cast<double>(tenth) / kTenths,
                 .seconds = std::nullopt,
                 .seconds_in_turn = std::nullopt};
    if (cost_known) {
      const double misses = (1 - point.hit_ratio) / misses_now;
      point.seconds = std::max(free.seconds, now.seconds * misses);
      point.seconds_in_turn = free.seconds + (now.seconds - free.seconds) * misses;
    } else if (tenth == kTenths) {
      point.seconds = point.seconds_in_turn = free.seconds;
    } else if (point.hit_ratio >= hits_now && !gain.resolved) {
      point.seconds = point.seconds_in_turn = now.seconds;  // more hits do not help
    }
    points.push_back(point);
  }
  return points;
}

Report MakeReport(const Seen& seen, const Options& options) {
  Report report{.state = seen.state,
                .message = "",
                .loader = seen.loader,
                .ranks = static_cast<std::uint32_t>(seen.ranks.size()),
                .options = options,
                .what_if = {}};
  std::vector<const PhaseTimes*> measured;
  std::vector<const PhaseTimes*> free;
  for (const StepClock* rank : seen.ranks) {
    const bool first = measured.empty();
    const std::uint64_t steps = rank->measured().all_steps();
    const std::uint64_t free_steps = rank->free().all_steps();
    report.measured_steps = first ? steps : std::min(report.measured_steps, steps);
    report.free_steps = first ? free_steps : std::min(report.free_steps, free_steps);
    measured.push_back(&rank->measured());
    free.push_back(&rank->free());
  }
  report.message = Progress(report, seen);
  if (seen.state == State::kEndedEarly) report.message = seen.why + " " + report.message;
  if (seen.state != State::kDone || measured.empty()) return report;
  report.now = TimeOf(measured);
  report.free = TimeOf(free);
  report.free->hit_ratio.reset();
  report.gain = GainOf(*report.now, *report.free);
  report.run = RunOf(seen, options, *report.now, *report.free);
  report.what_if = WhatIfOf(*report.now, *report.free, *report.gain);
  report.message = Conclusion(*report.now, *report.free, *report.gain);
  return report;
}

}  // namespace optcache::headspace
