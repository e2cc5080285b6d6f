#include "cli/simulate/simulate_report.h"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using simulation::PolicyName;
using simulation::PolicyResult;

OrderedJson OrNull(const std::optional<std::uint64_t>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

std::string OfBound(std::uint64_t value, const std::optional<std::uint64_t>& bound) {
  if (!bound || *bound == 0) return "-";
  return fmt::format("{:.5f}", static_cast<double>(value) / static_cast<double>(*bound));
}

// The columns that depend on what was asked for.
std::string OptionalHeads(const SimulateReport& report) {
  std::string text;
  if (report.sizes_vary)
    text += fmt::format(" {:>11} {:>9} {:>7}", "STORE BYTES", "OF BOUND", "BYTES");
  for (const simulation::StoreOptions& store : report.stores)
    text += fmt::format(" {:>9}", fmt::format("TIME@{:.3g}", store.bandwidth));
  return text;
}

std::string OptionalCells(const SimulateReport& report, const PolicyResult& result) {
  std::string text;
  if (report.sizes_vary) {
    text +=
        fmt::format(" {:>11} {:>9} {:>7.4f}", FormatBytes(result.store_bytes),
                    OfBound(result.store_bytes, report.bound.store_bytes), result.byte_hit_ratio);
  }
  for (const double time : result.epoch_time)
    text += fmt::format(" {:>9.3f}", time);
  return text;
}

std::string Footer(const SimulateReport& report) {
  std::string text;
  if (report.bound.store_reads) {
    text +=
        fmt::format("No cache of this size reads less than {} samples", *report.bound.store_reads);
    if (report.sizes_vary && report.bound.store_bytes)
      text += fmt::format(", or {}", FormatBytes(*report.bound.store_bytes));
    text += ".\n";
  }
  if (!report.stores.empty())
    text +=
        "TIME@b: epoch time / compute time while the store delivers b of what the jobs could "
        "read.\n";
  return text;
}

}  // namespace

std::string ReportAsJson(const SimulateReport& report) {
  OrderedJson root;
  root["bound"] = {{"storeReads", OrNull(report.bound.store_reads)},
                   {"storeBytes", OrNull(report.bound.store_bytes)}};
  root["policies"] = OrderedJson::object();
  for (const auto& [policy, result] : report.lines) {
    OrderedJson& json = root["policies"][std::string(PolicyName(policy))];
    json = {{"storeReads", result.store_reads},
            {"storeBytes", result.store_bytes},
            {"hitRatio", result.hit_ratio},
            {"byteHitRatio", result.byte_hit_ratio},
            {"hitRatioByTenth", result.hit_ratio_by_tenth},
            {"localPerAccess", result.local_per_access},
            {"peerPerAccess", result.peer_per_access},
            {"movedPerAccess", result.moved_per_access},
            {"epochTime", OrderedJson::array()}};
    for (std::size_t i = 0; i < report.stores.size(); ++i) {
      json["epochTime"].push_back(
          {{"storeBandwidth", report.stores[i].bandwidth}, {"ratio", result.epoch_time[i]}});
    }
  }
  return root.dump(2) + "\n";
}

std::string ReportAsCsv(const SimulateReport& report) {
  std::string text =
      "policy,store_reads,store_bytes,bound_reads,bound_bytes,hit_ratio,byte_hit_ratio,local,peer,"
      "moved";
  for (int tenth = 1; tenth <= 10; ++tenth)
    text += fmt::format(",tenth_{}", tenth);
  for (const simulation::StoreOptions& store : report.stores)
    text += fmt::format(",epoch_time_at_{:.6g}", store.bandwidth);
  text += "\n";
  const auto cell = [](const std::optional<std::uint64_t>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const auto& [policy, result] : report.lines) {
    text += fmt::format("{},{},{},{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f}", PolicyName(policy),
                        result.store_reads, result.store_bytes, cell(report.bound.store_reads),
                        cell(report.bound.store_bytes), result.hit_ratio, result.byte_hit_ratio,
                        result.local_per_access, result.peer_per_access, result.moved_per_access);
    for (const double ratio : result.hit_ratio_by_tenth)
      text += fmt::format(",{:.6f}", ratio);
    for (const double time : result.epoch_time)
      text += fmt::format(",{:.6f}", time);
    text += "\n";
  }
  return text;
}

std::string ReportAsTable(const SimulateReport& report) {
  std::string text = fmt::format("{:<12} {:>11} {:>9}{} {:>7} {:>7} {:>7} {:>7}  {}\n", "POLICY",
                                 "STORE READS", "OF BOUND", OptionalHeads(report), "HITS", "LOCAL",
                                 "PEER", "MOVED", "HITS BY TENTH OF AN EPOCH");
  for (const auto& [policy, result] : report.lines) {
    text += fmt::format("{:<12} {:>11} {:>9}{} {:>7.4f} {:>7.4f} {:>7.4f} {:>7.4f} ",
                        PolicyName(policy), result.store_reads,
                        OfBound(result.store_reads, report.bound.store_reads),
                        OptionalCells(report, result), result.hit_ratio, result.local_per_access,
                        result.peer_per_access, result.moved_per_access);
    for (const double ratio : result.hit_ratio_by_tenth)
      text += fmt::format(" {:.3f}", ratio);
    text += "\n";
  }
  return text + Footer(report);
}

}  // namespace optcache::cli
