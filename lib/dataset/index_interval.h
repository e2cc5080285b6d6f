#pragma once

// How often a source is indexed again: `spec.index.interval`.

#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace optcache::dataset {

inline constexpr Duration kIndexIntervalMin = std::chrono::minutes(10);
inline constexpr Duration kIndexIntervalMax = std::chrono::hours(720);

// "10m", "24h": whole seconds within those bounds. kInvalidArgument says what is allowed.
Result<Duration> ParseIndexInterval(std::string_view text);

}  // namespace optcache::dataset
