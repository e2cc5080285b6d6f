#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace optcache {

// A span of time as kubectl takes it: "90s", "1h30m", "500ms"; "0" is none. kInvalidArgument: it is
// none, or longer than a hundred days.
Result<Duration> ParseDuration(std::string_view text);

// As ParseDuration reads it, in the largest units: "1h30m", "500ms"; "0s" is none. Not for spans
// below zero.
std::string FormatDuration(Duration duration);

struct DurationBounds {
  Duration least;
  Duration most;
  std::string_view allowed;  // says so: "from 1s to 24h, for example 10m"
};

// Whole seconds within the bounds. kInvalidArgument says what is allowed.
Result<Duration> ParseDurationWithin(std::string_view text, const DurationBounds& bounds);

}  // namespace optcache
