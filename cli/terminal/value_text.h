#pragma once

// Numbers as people read them, by Grafana's names of units. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace optcache::cli {

// percentunit, bytes, Bps, ops, s, short; any other unit: the number alone.
std::string FormatValue(double value, std::string_view unit);

// "56.2 %" of 0.562, and of "0.562"; "-" of an empty text, and what is no number stays.
std::string PercentText(double share);
std::string PercentText(const std::string& share);

// Round numbers of that unit from `low` to `high` or a little beyond, about `count` of them.
std::vector<double> AxisTicks(double low, double high, int count, std::string_view unit);

// Round moments between the two, at most `count`, and how they are written: UTC.
struct TimeTick {
  double at = 0;
  std::string text;
};
std::vector<TimeTick> TimeTicks(double from, double to, int count);

// "2026-01-05 10:00:00 UTC".
std::string FormatMoment(double unix_seconds);

}  // namespace optcache::cli
