#include "cli/terminal/time_unit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace optcache::cli {

TimeUnit UnitFor(double seconds) {
  constexpr std::array<TimeUnit, 4> kUnits{{{.seconds = 3600, .name = "h"},
                                            {.seconds = 60, .name = "min"},
                                            {.seconds = 1, .name = "s"},
                                            {.seconds = .001, .name = "ms"}}};
  for (const TimeUnit& unit : kUnits) {
    if (std::abs(seconds) >= unit.seconds) return unit;
  }
  return kUnits.back();
}

int DecimalsFor(double seconds, const TimeUnit& unit, int digits) {
  constexpr int kDecimalsMax = 3;
  const double value = std::abs(seconds) / unit.seconds;
  if (value <= 0) return kDecimalsMax;
  const int before = static_cast<int>(std::floor(std::log10(value))) + 1;
  return std::clamp(digits - before, 0, kDecimalsMax);
}

std::string InUnit(double seconds, const TimeUnit& unit, int decimals) {
  std::string number = fmt::format("{:.{}f}", seconds / unit.seconds, decimals);
  if (number.find_first_not_of("-0.") == std::string::npos && number.starts_with('-'))
    number.erase(0, 1);
  return fmt::format("{} {}", number, unit.name);
}

}  // namespace optcache::cli
