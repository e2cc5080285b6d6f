#include "dataset/patience.h"

#include "base/duration_text.h"

namespace optcache::dataset {

Result<Duration> ParsePatience(std::string_view text) {
  return ParseDurationWithin(text, {.least = kPatienceMin,
                                    .most = kPatienceMax,
                                    .allowed = "from 1s to 24h, written with h, m "
                                               "and s, for example 10m or 1h30m"});
}

}  // namespace optcache::dataset
