// Reads a goal, and writes what was found for it as a table, CSV, JSON and a curve.
//
// All four are written from one report, in which each policy has the points that were measured. If
// no capacity reaches the goal, the figures are those of the largest that was measured, and a
// sentence says so.

#include "cli/simulate/simulate_until.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/terminal/svg_chart.h"
#include "cli/terminal/text_table.h"
#include "cli/terminal/value_text.h"

namespace optcache::cli {
namespace {

using simulation::CapacityPoint;
using simulation::Goal;
using simulation::PolicyName;
using UntilLine = UntilReport::Line;
using OrderedJson = nlohmann::ordered_json;

bool IsWaiting(const UntilReport& report) {
  return report.goal.of == Goal::Of::kWaiting;
}

std::string_view ValueName(const UntilReport& report) {
  return IsWaiting(report) ? "waiting" : "cost";
}

std::string ValueText(const UntilReport& report, double value) {
  return IsWaiting(report) ? PercentText(value) : dataset::FormatMoney(value);
}

const CapacityPoint& PointOf(const UntilLine& line) {
  return line.found.least ? *line.found.least : line.found.measured.back();
}

ByteCount BytesOf(const UntilReport& report, double capacity) {
  return static_cast<ByteCount>(std::llround(capacity * static_cast<double>(report.dataset_bytes)));
}

bool RisesSomewhere(const UntilLine& line) {
  const auto rises = [](const CapacityPoint& less, const CapacityPoint& more) {
    return !simulation::Reaches(more.value, less.value);
  };
  return std::ranges::adjacent_find(line.found.measured, rises) != line.found.measured.end();
}

// What does not count, if anything.
std::string FirstEpochs(const UntilReport& report) {
  const std::string epochs = fmt::format("{:g}", std::round(report.epochs_left_out * 100) / 100);
  return epochs == "1" ? "first epoch" : fmt::format("first {} epochs", epochs);
}

// What there is to say of a policy beside its row.
std::string Remark(const UntilReport& report, const UntilLine& line) {
  const std::string_view name = PolicyName(line.policy);
  const std::string value = ValueText(report, PointOf(line).value);
  if (!line.found.least) {
    const std::string which = report.epochs_left_out > 0 ? " after the " + FirstEpochs(report) : "";
    return fmt::format(
        "{}: a capacity of 100 % does not reach the goal: {} {}. Of its {} store "
        "reads{}, {} are the first of their sample, which no cache spares.\n",
        name, IsWaiting(report) ? "training still waits" : "the run still costs", value,
        line.store_reads, which, report.first_reads);
  }
  std::string text;
  if (line.found.least->capacity == 0)
    text += fmt::format("{}: the goal is reached without a cache.\n", name);
  if (RisesSomewhere(line) && line.found.least->capacity > 0) {
    text += fmt::format(
        "{}: more capacity does not always help this policy, so a smaller one may reach the goal, "
        "too. --plot shows the curve.\n",
        name);
  }
  return text;
}

std::string LeftOut(const UntilReport& report) {
  if (report.epochs_left_out <= 0) return "";
  const std::string epochs = FirstEpochs(report);
  return fmt::format("; the {} {} left out", epochs, epochs.ends_with('s') ? "are" : "is");
}

std::string Meaning(const UntilReport& report) {
  const std::string value =
      IsWaiting(report)
          ? fmt::format(
                "WAITING: share of an epoch's time in which training waits for a store that "
                "delivers {:.3g} of what the jobs could read{}.\n",
                report.store_bandwidth, LeftOut(report))
          : fmt::format(
                "COST: of all requests at {} each and all bytes at {} a GiB that the whole run "
                "reads from the store, the first epoch included.\n",
                dataset::FormatPrice(report.goal.price.per_request),
                dataset::FormatPrice(report.goal.price.per_gib));
  return value +
         "CAPACITY: of all nodes together, the least that reaches the goal, in steps of 0.1 % of "
         "the dataset.\n";
}

}  // namespace

Result<Goal> ParseGoal(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view amount =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const auto made = [](const Result<dataset::CapacityGoal>& goal,
                       const char* allowed) -> Result<Goal> {
    if (goal) return SimulatedGoal(*goal);
    return Error(Code::kInvalidArgument, std::string("until: ") + allowed);
  };
  if (name == "waiting") {
    return made(dataset::ParseWaitingGoal(amount),
                "waiting takes a share of the time, from 0 to below 1: waiting=2% or waiting=0.02");
  }
  if (name == "cost") {
    return made(dataset::ParseCostGoal(amount),
                "cost takes an amount of money, 0 or more: cost=12.5");
  }
  return Error(Code::kInvalidArgument,
               "until: '" + std::string(text) + "', allowed: waiting=2% or cost=12.5");
}

Goal SimulatedGoal(const dataset::CapacityGoal& goal) {
  const bool waiting = goal.of == dataset::CapacityGoal::Of::kWaiting;
  return {
      .of = waiting ? Goal::Of::kWaiting : Goal::Of::kCost, .at_most = goal.at_most, .price = {}};
}

std::string UntilAsJson(const UntilReport& report) {
  const std::string value_name(ValueName(report));
  OrderedJson root;
  root["goal"][value_name] = report.goal.at_most;
  if (IsWaiting(report)) {
    root["goal"]["storeBandwidth"] = report.store_bandwidth;
  } else {
    root["goal"]["perRequest"] = report.goal.price.per_request;
    root["goal"]["perGiB"] = report.goal.price.per_gib;
  }
  root["datasetBytes"] = report.dataset_bytes;
  root["policies"] = OrderedJson::object();
  for (const UntilLine& line : report.lines) {
    const CapacityPoint& point = PointOf(line);
    OrderedJson& json = root["policies"][std::string(PolicyName(line.policy))];
    json["capacity"] = line.found.least ? OrderedJson(point.capacity) : OrderedJson();
    json["capacityBytes"] =
        line.found.least ? OrderedJson(BytesOf(report, point.capacity)) : OrderedJson();
    json[value_name] = point.value;
    json["hitRatio"] = line.result.hit_ratio;
    json["storeReads"] = line.result.store_reads;
    json["storeBytes"] = line.result.store_bytes;
    json["curve"] = OrderedJson::array();
    for (const auto& [capacity, value] : line.found.measured)
      json["curve"].push_back({{"capacity", capacity}, {value_name, value}});
  }
  return root.dump(2) + "\n";
}

std::string UntilAsCsv(const UntilReport& report) {
  std::string text = fmt::format(
      "policy,capacity,capacity_bytes,{},hit_ratio,store_reads,store_bytes\n", ValueName(report));
  for (const UntilLine& line : report.lines) {
    const CapacityPoint& point = PointOf(line);
    const std::string capacity =
        line.found.least ? fmt::format("{:.3f},{}", point.capacity, BytesOf(report, point.capacity))
                         : ",";
    text +=
        fmt::format("{},{},{:.9g},{:.6f},{},{}\n", PolicyName(line.policy), capacity, point.value,
                    line.result.hit_ratio, line.result.store_reads, line.result.store_bytes);
  }
  return text;
}

std::string UntilAsTable(const UntilReport& report) {
  std::vector<std::vector<std::string>> rows = {{"POLICY", "CAPACITY", "BYTES",
                                                 IsWaiting(report) ? "WAITING" : "COST", "HITS",
                                                 "STORE READS", "STORE BYTES"}};
  std::string remarks;
  for (const UntilLine& line : report.lines) {
    const CapacityPoint& point = PointOf(line);
    const bool reached = line.found.least.has_value();
    rows.push_back(
        {std::string(PolicyName(line.policy)), reached ? PercentText(point.capacity) : "-",
         reached ? FormatBytes(BytesOf(report, point.capacity)) : "-",
         ValueText(report, point.value), fmt::format("{:.4f}", line.result.hit_ratio),
         fmt::format("{}", line.result.store_reads), FormatBytes(line.result.store_bytes)});
    remarks += Remark(report, line);
  }
  return FormatTable(std::move(rows)) + remarks + Meaning(report);
}

std::string DrawUntil(const UntilReport& report) {
  const bool waiting = IsWaiting(report);
  const double unit = waiting ? 100 : 1;
  const double goal = report.goal.at_most * unit;
  Chart chart{.title = waiting ? "Waiting by capacity" : "Cost by capacity",
              .x_label = "capacity / dataset",
              .y_label = waiting ? "waiting, % of the time" : "cost of the run",
              .y_max = goal,
              .series = {},
              .marks = {}};
  for (const UntilLine& line : report.lines) {
    Series series{.name = std::string(PolicyName(line.policy)), .points = {}};
    for (const auto& [capacity, value] : line.found.measured) {
      series.points.emplace_back(capacity, value * unit);
      chart.y_max = std::max(chart.y_max, value * unit);
    }
    if (line.found.least) {
      chart.marks.push_back({.series = series.name,
                             .x = line.found.least->capacity,
                             .y = line.found.least->value * unit});
    }
    chart.series.push_back(std::move(series));
  }
  if (chart.y_max <= 0) chart.y_max = 1;
  chart.series.push_back({.name = "goal", .points = {{0, goal}, {1, goal}}});
  return DrawCharts({chart});
}

}  // namespace optcache::cli
