#include "cli/status/savings.h"

#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "cli/terminal/text_table.h"
#include "dataset/store_price.h"

namespace optcache::cli {

std::vector<Savings> SavingsIn(const std::vector<MetricSample>& samples) {
  std::map<std::string, Savings> by_name;
  for (const MetricSample& sample : samples) {
    const auto label = sample.labels.find("dataset");
    const bool requests = sample.name == "optcache_saved_requests";
    const bool bytes = sample.name == "optcache_saved_bytes";
    const bool cost = sample.name == "optcache_saved_cost";
    if (label == sample.labels.end() || (!requests && !bytes && !cost)) continue;
    Savings& of = by_name[label->second];
    of.dataset = label->second;
    if (requests) of.requests += sample.value;
    if (bytes) of.bytes += sample.value;
    if (cost) of.cost = of.cost.value_or(0) + sample.value;
  }
  std::vector<Savings> all;
  for (auto& [name, savings] : by_name)
    all.push_back(std::move(savings));
  return all;
}

std::string FormatSavings(const SidecarPages& pages) {
  std::string text;
  if (pages.silent > 0) {
    text = fmt::format("{} of {} sidecars did not answer: what they saved is not known.\n",
                       pages.silent, pages.asked);
  }
  const std::vector<Savings> savings = SavingsIn(pages.samples);
  if (savings.empty()) return text;
  std::vector<std::vector<std::string>> rows = {
      {"DATASET", "SAVED REQUESTS", "SAVED BYTES", "SAVED MONEY"}};
  for (const Savings& of : savings) {
    rows.push_back({of.dataset, fmt::format("{:.0f}", of.requests),
                    FormatSignedBytes(ToWhole<std::int64_t>(of.bytes)),
                    of.cost ? dataset::FormatMoney(*of.cost) : "-"});
  }
  return text + "Saved by the sidecars that run, compared with the same reads without a cache:\n" +
         FormatTable(std::move(rows));
}

Result<std::string> WithSavings(const std::string& status, const SidecarPages& pages) {
  auto json = nlohmann::ordered_json::parse(status, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error(Code::kInvalidArgument, "what the coordinator answers is no JSON object");
  nlohmann::ordered_json datasets = nlohmann::ordered_json::array();
  for (const Savings& of : SavingsIn(pages.samples)) {
    datasets.push_back({{"dataset", of.dataset}, {"requests", of.requests}, {"bytes", of.bytes}});
    if (of.cost) datasets.back()["cost"] = *of.cost;
  }
  json["savings"] = {
      {"sidecars", pages.asked}, {"silent", pages.silent}, {"datasets", std::move(datasets)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace optcache::cli
