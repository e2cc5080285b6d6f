#pragma once

// The pages of metrics of the sidecars that run.

#include <cstddef>
#include <string>
#include <vector>

#include "cli/local/metrics_text.h"

namespace optcache::cli {

struct SidecarPages {
  std::vector<MetricSample> samples;  // of all that answered
  std::size_t asked = 0;
  std::size_t silent = 0;  // of them did not answer: their samples are missing
};

// Waits for 5 s at most.
SidecarPages AskSidecars(const std::vector<std::string>& urls);

}  // namespace optcache::cli
