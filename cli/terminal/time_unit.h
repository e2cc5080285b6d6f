#pragma once

// Spans of time for people: one unit for numbers that are compared.

#include <string>
#include <string_view>

namespace optcache::cli {

struct TimeUnit {
  double seconds = 1;
  std::string_view name = "s";
};

// ms, s, min or h: the largest that is not above this many seconds.
TimeUnit UnitFor(double seconds);

// How many decimals show `digits` digits of `seconds` in that unit; 0 to 3.
int DecimalsFor(double seconds, const TimeUnit& unit, int digits);

// "-3.33 h"; what is rounded to nothing has no sign.
std::string InUnit(double seconds, const TimeUnit& unit, int decimals);

}  // namespace optcache::cli
