#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace optcache {

// A span of time as kubectl takes it: "90s", "1h30m", "500ms"; "0" is none. kInvalidArgument: it is
// none, or longer than a hundred days.
Result<Duration> ParseDuration(std::string_view text);

}  // namespace optcache
