#pragma once

// What the cache saved, as the pages of sidecars have it (docs/user/what-it-saves.md).

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/local/metrics_text.h"
#include "cli/local/sidecar_pages.h"

namespace optcache::cli {

// Sums of one dataset over sidecars.
struct Savings {
  std::string dataset;
  double requests = 0;
  double bytes = 0;
  std::optional<double> cost;  // nullopt: no price is known
  friend bool operator==(const Savings&, const Savings&) = default;
};

// By name. Pure, as is what follows.
std::vector<Savings> SavingsIn(const std::vector<MetricSample>& samples);

// A table, or nothing where there is nothing to say. Ends with a newline.
std::string FormatSavings(const SidecarPages& pages);

// `status`, the coordinator's JSON, with a field `savings`. kInvalidArgument: it is no JSON object.
Result<std::string> WithSavings(const std::string& status, const SidecarPages& pages);

}  // namespace optcache::cli
