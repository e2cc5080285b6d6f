#pragma once

// What `optcache simulate` prints. Pure, and compared with golden text.

#include <string>
#include <vector>

#include "simulation/simulate.h"

namespace optcache::cli {

struct SimulateReport {
  simulation::Bound bound;
  bool sizes_vary = false;
  std::vector<simulation::StoreOptions> stores;  // for which epoch times were computed
  struct Line {
    simulation::PolicyKind policy;
    simulation::PolicyResult result;
  };
  std::vector<Line> lines;
};

// {"bound": {storeReads, storeBytes}, "policies": {name: {storeReads, hitRatio, ...}}}; what is not
// known is null, ratios are those of PolicyResult.
std::string ReportAsJson(const SimulateReport& report);

// A head, then a line a policy.
std::string ReportAsCsv(const SimulateReport& report);

// A table for people.
std::string ReportAsTable(const SimulateReport& report);

}  // namespace optcache::cli
