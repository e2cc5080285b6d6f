#include "cli/simulate_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {

std::string ReportAsJson(const SimulateReport& report) {
  nlohmann::ordered_json root;
  root["bound"] = report.bound ? nlohmann::ordered_json(*report.bound) : nlohmann::ordered_json();
  root["policies"] = nlohmann::ordered_json::object();
  for (const auto& [policy, result] : report.lines) {
    root["policies"][std::string(plan::PolicyName(policy))] = {
        {"storeReads", result.store_reads},
        {"hitRatio", result.hit_ratio},
        {"hitRatioByTenth", result.hit_ratio_by_tenth},
        {"movedPerAccess", result.moved_per_access},
        {"peerPerAccess", result.peer_per_access},
        {"capacityExceeded", result.capacity_exceeded}};
  }
  return root.dump(2) + "\n";
}

std::string ReportAsTable(const SimulateReport& report) {
  std::string text =
      fmt::format("{:<8} {:>12} {:>9} {:>7} {:>7} {:>7}  {}\n", "POLICY", "STORE READS", "OF BOUND",
                  "HITS", "MOVED", "PEER", "HITS BY TENTH OF AN EPOCH");
  for (const auto& [policy, result] : report.lines) {
    const std::string of_bound =
        report.bound ? fmt::format("{:.5f}", static_cast<double>(result.store_reads) /
                                                 static_cast<double>(*report.bound))
                     : "-";
    text += fmt::format("{:<8} {:>12} {:>9} {:>7.4f} {:>7.4f} {:>7.4f} ", plan::PolicyName(policy),
                        result.store_reads, of_bound, result.hit_ratio, result.moved_per_access,
                        result.peer_per_access);
    for (const double tenth : result.hit_ratio_by_tenth)
      text += fmt::format(" {:.3f}", tenth);
    text += "\n";
  }
  if (report.bound)
    text += fmt::format("No cache of this size reads less than {}.\n", *report.bound);
  return text;
}

}  // namespace optcache::cli
