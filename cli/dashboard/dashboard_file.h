#pragma once

// A Grafana dashboard as this program draws it: the part of Grafana's JSON that the dashboards of
// the chart use. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::cli {

enum class PanelKind : std::uint8_t { kTimeSeries, kStat, kGauge, kTable, kStateTimeline };

std::string_view PanelKindName(PanelKind kind);

struct PanelTarget {
  std::string ref;
  std::string query;   // PromQL with variables
  std::string legend;  // "{{label}}" is the label's value; empty: the series' own name
};

// What a value is shown as.
struct ValueMapping {
  std::string value;
  std::string text;
  std::string colour;
};

// From which value on a colour holds.
struct ColourStep {
  std::optional<double> from;  // nothing: from the lowest
  std::string colour;
};

struct TableColumn {
  std::string label;  // of the series; "Value" is the value
  std::string heading;
};

// Grafana's grid: 24 columns.
struct GridPlace {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

struct Panel {
  int id = 0;
  PanelKind kind = PanelKind::kTimeSeries;
  std::string title;
  std::string description;
  std::string unit;
  std::optional<double> min;
  std::optional<double> max;
  bool stacked = false;
  GridPlace place;
  std::vector<PanelTarget> targets;
  std::vector<ValueMapping> mappings;
  std::vector<ColourStep> steps;
  std::vector<TableColumn> columns;

  // Asked for at one moment, not over the time shown.
  bool instant() const {
    return kind == PanelKind::kStat || kind == PanelKind::kGauge || kind == PanelKind::kTable;
  }
};

struct PanelRow {
  std::string title;
  int y = 0;
};

struct DashboardVariable {
  std::string name;
  std::string all_value;  // what "all" stands for, a regular expression
  std::string values;     // Grafana's question for those that there are: label_values(...)
};

struct Dashboard {
  std::string uid;
  std::string title;
  std::string description;
  std::vector<DashboardVariable> variables;
  std::vector<PanelRow> rows;
  std::vector<Panel> panels;
};

inline constexpr ByteCount kDashboardBytesMax = 4_MiB;
inline constexpr std::size_t kDashboardPanelsMax = 200;

// `name` is for errors. kInvalidArgument: no dashboard, or one with something that this program
// does not draw; the message names panel and field.
Result<Dashboard> ParseDashboard(std::string_view json, const std::string& name);

}  // namespace optcache::cli
