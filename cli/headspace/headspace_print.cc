// Writes a report of headspace as tables and sentences, and draws its curve.
//
// A measured time shows as many digits as its interval leaves sure. The steps of the curve have one
// unit and one number of decimals, and so have all times of the run (RunScale), so that rows can be
// compared. Figures that the report does not have are left out or shown as a dash.

#include "cli/headspace/headspace_print.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/terminal/svg_chart.h"
#include "cli/terminal/text_table.h"
#include "cli/terminal/time_unit.h"

namespace optcache::cli {
namespace {

using headspace::Report;
using headspace::StepTime;
using headspace::WhatIf;

constexpr double kHalf = .5;
constexpr double kSecondsPerHour = 3600;
constexpr int kDigitsOfStep = 3;
constexpr int kDigitsOfRun = 4;

// As many digits as the interval leaves sure, and one more.
std::vector<std::string> TimeRow(const char* name, double seconds, double plus_minus,
                                 const TimeUnit& unit) {
  const int decimals =
      plus_minus > 0 ? DecimalsFor(plus_minus, unit, 2) : DecimalsFor(seconds, unit, kDigitsOfStep);
  return {name, InUnit(seconds, unit, decimals), "± " + InUnit(plus_minus, unit, decimals)};
}

std::string SamplesText(double samples) {
  const double whole = std::round(samples);
  const bool varies = std::abs(samples - whole) > .005;
  return fmt::format("{:.0f} samples{}", whole, varies ? " on average" : "");
}

std::string TimesText(const Report& report) {
  const StepTime& now = *report.now;
  const TimeUnit unit = UnitFor(now.seconds);
  std::string text =
      FormatTable({{"", "STEP", "95 %"},
                   TimeRow("as it is", now.seconds, now.plus_minus, unit),
                   TimeRow("data at once", report.free->seconds, report.free->plus_minus, unit),
                   TimeRow("saved", report.gain->seconds, report.gain->plus_minus, unit)});
  text += fmt::format(
      "A step has {}, {}; {:.0f} % of them came from a node.\n", SamplesText(now.samples),
      FormatBytes(static_cast<ByteCount>(now.bytes + kHalf)), now.hit_ratio.value_or(0) * 100);
  return text;
}

// An interval that is wider than half of what is gained tells little.
bool IsWide(const headspace::Gain& gain) {
  return !gain.speedup_high || *gain.speedup_high - gain.speedup_low > kHalf * (gain.speedup - 1);
}

std::string SpeedupText(const Report& report) {
  const headspace::Gain& gain = *report.gain;
  if (!gain.resolved) return report.message + "\n";
  const std::string high =
      gain.speedup_high ? fmt::format("to {:.2f}", *gain.speedup_high) : "or more";
  return fmt::format("Up to {:.2f} times as fast ({:.2f} {}): no cache gains more.\n{}",
                     gain.speedup, gain.speedup_low, high,
                     IsWide(gain) ? "That interval is wide: measure more steps (--steps, "
                                    "--free-steps).\n"
                                  : "");
}

// The unit and digits of all times of the whole run.
struct RunScale {
  TimeUnit unit;
  int decimals = 0;

  explicit RunScale(const headspace::RunHours& run)
      : unit(UnitFor(run.hours_now * kSecondsPerHour)),
        decimals(DecimalsFor(run.hours_now * kSecondsPerHour, unit, kDigitsOfRun)) {}
  std::string Text(double seconds) const { return InUnit(seconds, unit, decimals); }
};

std::string RunText(const Report& report) {
  if (!report.run || report.run->steps == 0)
    return "The length of the run is unknown: set --run-steps, or attach(loader, epochs=N).\n";
  const headspace::RunHours& run = *report.run;
  const RunScale scale(run);
  return fmt::format(
      "The run, {} steps ({}): {} as it is, {} at best, saves {}.\n", run.steps,
      run.announced ? "as announced" : "as you set it", scale.Text(run.hours_now * kSecondsPerHour),
      scale.Text(run.hours_free * kSecondsPerHour), scale.Text(run.hours_saved * kSecondsPerHour));
}

std::string SavedText(const Report& report, const std::optional<double>& seconds) {
  if (!seconds) return "-";
  return RunScale(*report.run)
      .Text(static_cast<double>(report.run->steps) * (report.now->seconds - *seconds));
}

std::string CurveText(const Report& report) {
  const bool has_hours = report.run && report.run->steps != 0;
  const TimeUnit unit = UnitFor(report.now->seconds);
  const int decimals = DecimalsFor(report.now->seconds, unit, kDigitsOfStep);
  const auto step = [&](const std::optional<double>& seconds) {
    return seconds ? InUnit(*seconds, unit, decimals) : "-";
  };
  std::vector<std::vector<std::string>> rows = {{"HITS", "STEP, OVERLAPPED", "STEP, IN TURN"}};
  if (has_hours) rows.front().insert(rows.front().end(), {"SAVES, OVERLAPPED", "SAVES, IN TURN"});
  for (const WhatIf& point : report.what_if) {
    rows.push_back({fmt::format("{:.0f} %", point.hit_ratio * 100), step(point.seconds),
                    step(point.seconds_in_turn)});
    if (!has_hours) continue;
    rows.back().push_back(SavedText(report, point.seconds));
    rows.back().push_back(SavedText(report, point.seconds_in_turn));
  }
  return "The time of a step by the share of hits, computed: a miss costs as much as it did, a hit "
         "nothing.\nReading and computing overlap or come in turn; the truth lies between.\n\n" +
         FormatTable(rows);
}

Series CurveOf(const Report& report, const TimeUnit& unit, const std::string& name,
               std::optional<double> WhatIf::* seconds) {
  Series series{.name = name, .points = {}};
  for (const WhatIf& point : report.what_if) {
    if (point.*seconds)
      series.points.emplace_back(point.hit_ratio * 100, *(point.*seconds) / unit.seconds);
  }
  return series;
}

}  // namespace

std::string HeadspaceAsTable(const Report& report) {
  if (!report.now || !report.free || !report.gain) return report.message + "\n";
  return fmt::format("{}, {} rank{}; {} steps as they are, {} with data at once\n\n", report.loader,
                     report.ranks, report.ranks == 1 ? "" : "s", report.now->steps,
                     report.free->steps) +
         TimesText(report) + "\n" + SpeedupText(report) + RunText(report) + "\n" +
         CurveText(report) + "\nWhat this run has trained is not for use.\n";
}

std::string DrawHeadspace(const Report& report) {
  const double now = report.now ? report.now->seconds : 1;
  const TimeUnit unit = UnitFor(now);
  Chart chart{.title = "A step by hit ratio",
              .x_label = "hit ratio, %",
              .y_label = fmt::format("a step, {}", unit.name),
              .x_max = 100,
              .y_max = now / unit.seconds,
              .series = {CurveOf(report, unit, "overlapped", &WhatIf::seconds),
                         CurveOf(report, unit, "in turn", &WhatIf::seconds_in_turn)}};
  for (const Series& series : chart.series) {
    for (const auto& [ratio, value] : series.points)
      chart.y_max = std::max(chart.y_max, value);
  }
  chart.series.push_back(
      {.name = "as it is", .points = {{0, now / unit.seconds}, {100, now / unit.seconds}}});
  return DrawCharts({chart});
}

}  // namespace optcache::cli
