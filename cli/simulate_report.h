#pragma once

// What `optcache simulate` prints. Pure, and compared with golden files.

#include <optional>
#include <string>
#include <vector>

#include "plan/simulate.h"

namespace optcache::cli {

struct SimulateReport {
  std::optional<std::uint64_t> bound;  // store reads; none for several jobs
  struct Line {
    plan::PolicyKind policy;
    plan::PolicyResult result;
  };
  std::vector<Line> lines;
};

// {"bound": reads or null, "policies": {name: {storeReads, hitRatio, ...}}}; ratios as
// PolicyResult.
std::string ReportAsJson(const SimulateReport& report);

// A table for people.
std::string ReportAsTable(const SimulateReport& report);

}  // namespace optcache::cli
