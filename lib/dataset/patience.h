#pragma once

// How long a source may be away before those who read it give up: `spec.source.patience`.

#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace optcache::dataset {

inline constexpr Duration kPatience = std::chrono::minutes(10);  // where nobody says more
inline constexpr Duration kPatienceMin = std::chrono::seconds(1);
inline constexpr Duration kPatienceMax = std::chrono::hours(24);

// "10m", "1h30m": whole seconds within those bounds. kInvalidArgument says what is allowed.
Result<Duration> ParsePatience(std::string_view text);

}  // namespace optcache::dataset
