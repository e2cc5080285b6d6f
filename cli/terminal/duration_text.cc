#include "cli/terminal/duration_text.h"

#include "base/duration_text.h"

namespace optcache::cli {

std::string MustBeDuration(const std::string& text) {
  const Result<Duration> duration = ParseDuration(text);
  return duration ? "" : duration.error().message();
}

}  // namespace optcache::cli
