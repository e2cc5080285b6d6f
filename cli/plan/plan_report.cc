// Writes the figures of plan files for people and for programs.
//
// The JSON is made first, and PlanAsTable writes the same values as lines, so that the two cannot
// differ.

#include "cli/plan/plan_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/terminal/text_table.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using plan::TableFigures;

double Share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<double> ByTenth(const TableFigures& figures) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < figures.hits_by_tenth.size(); ++i)
    ratios.push_back(Share(figures.hits_by_tenth[i], figures.reads_by_tenth[i]));
  return ratios;
}

std::string TenthsText(const TableFigures& figures) {
  std::string text;
  for (const double ratio : ByTenth(figures))
    text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", ratio);
  return text;
}

std::vector<std::string> ComparisonRow(std::string table, std::string runtime,
                                       const TableFigures& figures, const TableFigures& optimal) {
  return {std::move(table),
          std::move(runtime),
          fmt::format("{}", figures.reads - figures.hits),
          fmt::format("{:.4f}", figures.hit_ratio()),
          fmt::format("{:.4f}", Share(figures.hits, optimal.hits)),
          TenthsText(figures)};
}

OrderedJson FiguresAsJson(const TableFigures& figures) {
  return {{"hits", figures.hits},
          {"storeReads", figures.reads - figures.hits},
          {"hitRatio", figures.hit_ratio()},
          {"dropped", figures.dropped},
          {"mostHeld", figures.most_held},
          {"hitRatioByTenth", ByTenth(figures)}};
}

OrderedJson ReportAsJson(const PlanReport& report) {
  OrderedJson json = {
      {"reads", report.one_process.reads},
      {"samplesRead", report.samples_read},
      {"datasetSize", report.dataset_size},
      {"maxsize", report.maxsize},
      {"seed", report.seed},
      {"recipe", report.recipe.empty() ? OrderedJson() : OrderedJson(report.recipe)},
      {"oneProcess", FiguresAsJson(report.one_process)},
      {"shared", FiguresAsJson(report.shared)}};
  if (report.comparison) {
    json["published"] = FiguresAsJson(report.comparison->published);
    json["publishedShared"] = FiguresAsJson(report.comparison->published_shared);
    json["optimal"] = FiguresAsJson(report.comparison->optimal);
    json["unlikeRows"] = report.comparison->unlike_rows;
  }
  return json;
}

// Objects as lines "outer.inner", lists by blanks.
void AppendLines(const OrderedJson& json, const std::string& prefix,
                 std::vector<std::vector<std::string>>& rows) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      AppendLines(value, prefix + key + ".", rows);
      continue;
    }
    std::string text;
    if (value.is_array()) {
      for (const OrderedJson& number : value)
        text += fmt::format("{}{:.4f}", text.empty() ? "" : " ", number.get<double>());
    } else if (value.is_number_float()) {
      text = fmt::format("{:.6f}", value.get<double>());
    } else if (value.is_string()) {
      text = value.get<std::string>();
    } else {
      text = value.is_null() ? "-" : value.dump();
    }
    rows.push_back({prefix + key, text});
  }
}

std::string WhoDecided(const PlanReport& report) {
  const auto& comparison = *report.comparison;
  if (comparison.unlike_rows == 0) return "OPT4TorchDataset decides every row as this file does.\n";
  return fmt::format(
      "OPT4TorchDataset decides {} of the {} rows otherwise than this file, row {} first.\n",
      comparison.unlike_rows, report.one_process.reads, comparison.first_unlike);
}

std::string WhatToDo(const PlanReport& report) {
  const std::uint64_t optimal = report.comparison->optimal.hits;
  const std::uint64_t worse = std::min(report.one_process.hits, report.shared.hits);
  if (worse == optimal) return "It is optimal: no table has more hits, by either runtime.\n";
  return fmt::format(
      "An optimal table spares {} of the store reads in one process, {} by the shared runtime:\n"
      "  optcache plan export {} --output FILE\n",
      optimal - report.one_process.hits, optimal - report.shared.hits, report.file);
}

}  // namespace

std::string PlanAsText(const PlanReport& report) {
  return report.file + "\n" +
         FormatTable({
             {"  reads", fmt::format("{}, of {} samples of {}", report.one_process.reads,
                                     report.samples_read, report.dataset_size)},
             {"  order", report.recipe.empty() ? fmt::format("as listed; seed {}", report.seed)
                                               : report.recipe},
             {"  capacity", fmt::format("{} samples; at most {} are held", report.maxsize,
                                        report.one_process.most_held)},
             {"  hit ratio",
              fmt::format("{:.4f} in one process, {:.4f} by the shared runtime",
                          report.one_process.hit_ratio(), report.shared.hit_ratio())},
             {"  by tenth", TenthsText(report.one_process)},
         });
}

std::string ComparisonAsText(const PlanReport& report) {
  const auto& [published, published_shared, optimal, unlike_rows, first] = *report.comparison;
  return PlanAsText(report) + "\n" +
         FormatTable(
             {{"TABLE", "RUNTIME", "STORE READS", "HITS", "OF OPTIMUM", "HITS BY TENTH OF THE RUN"},
              ComparisonRow("this file", "one process", report.one_process, optimal),
              ComparisonRow("this file", "shared", report.shared, optimal),
              ComparisonRow("OPT4TorchDataset", "one process", published, optimal),
              ComparisonRow("OPT4TorchDataset", "shared", published_shared, optimal),
              ComparisonRow("optimal", "either", optimal, optimal)}) +
         WhoDecided(report) + WhatToDo(report);
}

std::string PlanAsTable(const PlanReport& report) {
  std::vector<std::vector<std::string>> rows;
  AppendLines(ReportAsJson(report), "", rows);
  return FormatTable(rows);
}

std::string PlanAsJson(const PlanReport& report) {
  return ReportAsJson(report).dump(2) + "\n";
}

}  // namespace optcache::cli
