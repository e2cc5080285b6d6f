#pragma once

// What `optcache plan` prints. Pure, and compared with golden text.

#include <cstdint>
#include <optional>
#include <string>

#include "opt4torch/decision_table.h"

namespace optcache::cli {

// What a file says of its cache, and how its table does.
struct PlanReport {
  std::string file;
  std::uint64_t maxsize = 0;
  std::uint32_t dataset_size = 0;
  std::int64_t seed = 0;
  std::uint64_t samples_read = 0;  // different ones
  std::string recipe;              // that makes the order; empty: not known
  plan::TableFigures one_process;
  plan::TableFigures shared;

  // Of the same order: the tables that OPT4TorchDataset and that optcache plan.
  struct Comparison {
    plan::TableFigures published;
    plan::TableFigures published_shared;
    plan::TableFigures optimal;     // by either runtime
    std::uint64_t unlike_rows = 0;  // of the file, that OPT4TorchDataset decides otherwise
    std::uint64_t first_unlike = 0;
  };
  std::optional<Comparison> comparison{};
};

// At a glance.
std::string PlanAsText(const PlanReport& report);
// That, and beside it what could be; with a comparison.
std::string ComparisonAsText(const PlanReport& report);
// A figure a line, or one object; with a comparison.
std::string PlanAsTable(const PlanReport& report);
std::string PlanAsJson(const PlanReport& report);

}  // namespace optcache::cli
