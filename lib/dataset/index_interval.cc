#include "dataset/index_interval.h"

#include "base/duration_text.h"

namespace optcache::dataset {

Result<Duration> ParseIndexInterval(std::string_view text) {
  return ParseDurationWithin(text, {.least = kIndexIntervalMin,
                                    .most = kIndexIntervalMax,
                                    .allowed = "from 10m to 720h, written with h, "
                                               "m and s, for example 1h or 24h"});
}

}  // namespace optcache::dataset
