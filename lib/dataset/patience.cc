#include "dataset/patience.h"

#include <string>

#include "base/duration_text.h"

namespace optcache::dataset {

Result<Duration> ParsePatience(std::string_view text) {
  const Result<Duration> patience = ParseDuration(text);
  if (!patience || *patience < kPatienceMin || *patience > kPatienceMax ||
      *patience % std::chrono::seconds(1) != Duration::zero()) {
    return Error(Code::kInvalidArgument,
                 "'" + std::string(text) +
                     "', allowed: a span of time from 1s to 24h, written with h, m and s, for "
                     "example 10m or 1h30m");
  }
  return *patience;
}

}  // namespace optcache::dataset
