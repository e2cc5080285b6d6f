// Reads the part of Grafana's JSON that is drawn here, and refuses what would be drawn wrongly.
//
// A field that changes the picture and is not known (a kind of panel, a transformation, an
// override) is an error that names panel and field. Other fields are skipped. Everything is
// bounded: panels, targets, the grid.

#include "cli/dashboard/dashboard_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, PanelKind>, 5> kKinds{{
    {"timeseries", PanelKind::kTimeSeries},
    {"stat", PanelKind::kStat},
    {"gauge", PanelKind::kGauge},
    {"table", PanelKind::kTable},
    {"state-timeline", PanelKind::kStateTimeline},
}};
constexpr int kGridColumns = 24;
constexpr int kGridHeightMax = 60;
constexpr int kGridEnd = 10'000;
constexpr std::size_t kTargetsMax = 26;

// Where in the file something is, for errors.
class Place {
 public:
  explicit Place(std::string text) : text_(std::move(text)) {}

  Place In(const std::string& part) const { return Place(text_ + ", " + part); }
  std::unexpected<Status> Refuse(const std::string& why) const {
    return Error(Code::kInvalidArgument, text_ + ": " + why);
  }

 private:
  std::string text_;
};

// Null if it is not there.
const Json& At(const Json& object, std::string_view pointer) {
  static const Json kNull;
  const Json::json_pointer path{std::string(pointer)};
  return object.contains(path) ? object.at(path) : kNull;
}

Result<std::string> Text(const Json& object, std::string_view pointer, const Place& place) {
  const Json& found = At(object, pointer);
  if (found.is_string()) return found.get<std::string>();
  return place.Refuse(fmt::format("{} is not a text", pointer));
}

std::string TextOr(const Json& object, std::string_view pointer, std::string otherwise) {
  const Json& found = At(object, pointer);
  return found.is_string() ? found.get<std::string>() : std::move(otherwise);
}

std::optional<double> Number(const Json& object, std::string_view pointer) {
  const Json& found = At(object, pointer);
  if (!found.is_number()) return std::nullopt;
  return found.get<double>();
}

Result<int> Whole(const Json& object, std::string_view pointer, int least, int most,
                  const Place& place) {
  const std::optional<double> number = Number(object, pointer);
  if (!number || *number < least || *number > most || std::floor(*number) != *number)
    return place.Refuse(
        fmt::format("{} is not a whole number from {} to {}", pointer, least, most));
  return static_cast<int>(*number);
}

Result<GridPlace> ReadGrid(const Json& panel, const Place& place) {
  GridPlace grid;
  ASSIGN_OR_RETURN(grid.x, Whole(panel, "/gridPos/x", 0, kGridColumns - 1, place));
  ASSIGN_OR_RETURN(grid.y, Whole(panel, "/gridPos/y", 0, kGridEnd, place));
  ASSIGN_OR_RETURN(grid.width, Whole(panel, "/gridPos/w", 1, kGridColumns - grid.x, place));
  ASSIGN_OR_RETURN(grid.height, Whole(panel, "/gridPos/h", 1, kGridHeightMax, place));
  return grid;
}

Result<std::vector<PanelTarget>> ReadTargets(const Json& panel, bool instant, const Place& place) {
  std::vector<PanelTarget> targets;
  const Json& list = At(panel, "/targets");
  if (!list.is_array() || list.empty() || list.size() > kTargetsMax)
    return place.Refuse(fmt::format("targets are not a list of 1 to {}", kTargetsMax));
  for (const Json& each : list) {
    PanelTarget target;
    ASSIGN_OR_RETURN(target.ref, Text(each, "/refId", place));
    ASSIGN_OR_RETURN(target.query, Text(each, "/expr", place));
    target.legend = TextOr(each, "/legendFormat", "");
    if (target.legend == "__auto") target.legend.clear();
    if (instant != (At(each, "/instant") == true))
      return place.Refuse(fmt::format("target {} {} be an instant query", target.ref,
                                      instant ? "has to" : "cannot"));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<std::vector<ValueMapping>> ReadMappings(const Json& defaults, const Place& place) {
  std::vector<ValueMapping> mappings;
  for (const Json& each : At(defaults, "/mappings")) {
    if (TextOr(each, "/type", "") != "value")
      return place.Refuse("a mapping is not of type value, which is the one that is known");
    for (const auto& [value, shown] : At(each, "/options").items()) {
      mappings.push_back({.value = value,
                          .text = TextOr(shown, "/text", value),
                          .colour = TextOr(shown, "/color", "")});
    }
  }
  return mappings;
}

Result<std::vector<ColourStep>> ReadSteps(const Json& defaults, const Place& place) {
  std::vector<ColourStep> steps;
  const Json& thresholds = At(defaults, "/thresholds");
  if (thresholds.is_null()) return steps;
  if (TextOr(thresholds, "/mode", "") != "absolute")
    return place.Refuse("thresholds are not absolute, which is the mode that is known");
  for (const Json& each : At(thresholds, "/steps"))
    steps.push_back({.from = Number(each, "/value"), .colour = TextOr(each, "/color", "")});
  return steps;
}

// Which labels a table shows, as filterFieldsByName and organize say it.
Result<std::vector<TableColumn>> ReadColumns(const Json& panel, const Place& place) {
  std::vector<TableColumn> columns;
  std::map<std::string, std::string> headings;
  std::map<std::string, int> order;
  for (const Json& each : At(panel, "/transformations")) {
    const std::string id = TextOr(each, "/id", "");
    if (id == "filterFieldsByName") {
      for (const Json& name : At(each, "/options/include/names")) {
        if (name.is_string()) columns.push_back({.label = name, .heading = name});
      }
    } else if (id == "organize") {
      for (const auto& [label, heading] : At(each, "/options/renameByName").items()) {
        if (heading.is_string()) headings[label] = heading;
      }
      for (const auto& [label, at] : At(each, "/options/indexByName").items()) {
        if (at.is_number_integer()) order[label] = at;
      }
    } else {
      return place.Refuse(
          fmt::format("transformation '{}' is not known; filterFieldsByName and organize are", id));
    }
  }
  if (columns.empty()) return place.Refuse("a table needs filterFieldsByName, with its columns");
  std::ranges::stable_sort(columns, {}, [&](const TableColumn& c) { return order[c.label]; });
  for (TableColumn& column : columns) {
    if (const auto found = headings.find(column.label); found != headings.end())
      column.heading = found->second;
  }
  return columns;
}

Result<PanelKind> ReadKind(const std::string& type, const Place& place) {
  const auto* const found = std::ranges::find(kKinds, type, &decltype(kKinds)::value_type::first);
  if (found != kKinds.end()) return found->second;
  std::string known;
  for (const auto& [name, _] : kKinds)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  return place.Refuse(fmt::format("type '{}' is not drawn; known are row, {}", type, known));
}

Result<Panel> ReadPanel(const Json& json, const Place& place) {
  Panel panel;
  ASSIGN_OR_RETURN(panel.id, Whole(json, "/id", 0, 1'000'000, place));
  ASSIGN_OR_RETURN(const std::string type, Text(json, "/type", place));
  ASSIGN_OR_RETURN(panel.kind, ReadKind(type, place));
  panel.title = TextOr(json, "/title", "");
  panel.description = TextOr(json, "/description", "");
  ASSIGN_OR_RETURN(panel.place, ReadGrid(json, place));
  ASSIGN_OR_RETURN(panel.targets, ReadTargets(json, panel.instant(), place));
  if (json.contains("repeat")) return place.Refuse("repeat is not known; write the panels out");
  if (const Json& overrides = At(json, "/fieldConfig/overrides"); !overrides.empty())
    return place.Refuse("overrides are not known");
  const Json& defaults = At(json, "/fieldConfig/defaults");
  panel.unit = TextOr(defaults, "/unit", "none");
  panel.min = Number(defaults, "/min");
  panel.max = Number(defaults, "/max");
  panel.stacked = TextOr(defaults, "/custom/stacking/mode", "none") == "normal";
  ASSIGN_OR_RETURN(panel.mappings, ReadMappings(defaults, place));
  ASSIGN_OR_RETURN(panel.steps, ReadSteps(defaults, place));
  if (panel.kind == PanelKind::kTable) {
    ASSIGN_OR_RETURN(panel.columns, ReadColumns(json, place));
  } else if (!At(json, "/transformations").empty()) {
    return place.Refuse("transformations are known of tables alone");
  }
  return panel;
}

Result<std::vector<DashboardVariable>> ReadVariables(const Json& json, const Place& place) {
  std::vector<DashboardVariable> variables;
  for (const Json& each : At(json, "/templating/list")) {
    ASSIGN_OR_RETURN(std::string name, Text(each, "/name", place));
    const std::string type = TextOr(each, "/type", "");
    if (type == "datasource") continue;
    if (type != "query") {
      return place.Refuse(
          fmt::format("variable {} is of type '{}'; query and datasource are known", name, type));
    }
    variables.push_back({.name = std::move(name),
                         .all_value = TextOr(each, "/allValue", ".*"),
                         .values = TextOr(each, "/query", "")});
  }
  return variables;
}

}  // namespace

std::string_view PanelKindName(PanelKind kind) {
  for (const auto& [name, known] : kKinds) {
    if (known == kind) return name;
  }
  return "";
}

Result<Dashboard> ParseDashboard(std::string_view json, const std::string& name) {
  const Place place("dashboard " + name);
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return place.Refuse("it is not a JSON object");
  Dashboard dashboard;
  ASSIGN_OR_RETURN(dashboard.uid, Text(parsed, "/uid", place));
  if (dashboard.uid.empty() || dashboard.uid.size() > 40 ||
      dashboard.uid.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
          std::string::npos) {
    return place.Refuse("uid has not 1 to 40 letters, digits, - and _");
  }
  dashboard.title = TextOr(parsed, "/title", dashboard.uid);
  dashboard.description = TextOr(parsed, "/description", "");
  ASSIGN_OR_RETURN(dashboard.variables, ReadVariables(parsed, place));
  const Json& panels = At(parsed, "/panels");
  if (!panels.is_array() || panels.size() > kDashboardPanelsMax)
    return place.Refuse(fmt::format("panels are not a list of at most {}", kDashboardPanelsMax));
  for (const Json& each : panels) {
    const std::string title = TextOr(each, "/title", "");
    const Place in_panel = place.In(fmt::format("panel '{}'", title));
    if (TextOr(each, "/type", "") == "row") {
      ASSIGN_OR_RETURN(const GridPlace grid, ReadGrid(each, in_panel));
      if (At(each, "/collapsed") == true) return in_panel.Refuse("collapsed rows are not known");
      dashboard.rows.push_back({.title = title, .y = grid.y});
      continue;
    }
    ASSIGN_OR_RETURN(Panel panel, ReadPanel(each, in_panel));
    dashboard.panels.push_back(std::move(panel));
  }
  return dashboard;
}

}  // namespace optcache::cli
