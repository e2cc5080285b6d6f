#pragma once

// Two looks at the pages of metrics of sidecars, as a rate needs them.

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/explain/training_limit.h"

namespace optcache::cli {

inline constexpr Duration kBetweenLooks = std::chrono::seconds(2);

// A page each, in the order of `urls`, or why one could not be had twice. Each look waits for
// `patience` at most. If no rank is attached at the first look, nothing is waited for: the second
// is the same.
std::vector<Result<PageLooks>> LookTwice(const std::vector<std::string>& urls, Duration patience);

}  // namespace optcache::cli
