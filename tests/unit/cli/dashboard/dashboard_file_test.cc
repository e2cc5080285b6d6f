#include "cli/dashboard/dashboard_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/dashboard/embedded.h"

namespace optcache::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json OnePanel() {
  return Json::parse(R"({"uid": "u", "title": "T", "templating": {"list": [
      {"name": "source", "type": "datasource"},
      {"name": "node", "type": "query", "allValue": ".+"}]},
    "panels": [
      {"type": "row", "title": "Row", "gridPos": {"x": 0, "y": 0, "w": 24, "h": 1}},
      {"id": 7, "type": "timeseries", "title": "P", "description": "D.",
       "gridPos": {"x": 8, "y": 1, "w": 8, "h": 6},
       "fieldConfig": {"defaults": {"unit": "bytes", "min": 0,
                                    "custom": {"stacking": {"mode": "normal"}}}, "overrides": []},
       "targets": [{"refId": "A", "expr": "up", "legendFormat": "{{pod}}"}]}]})");
}

void ExpectRefused(const Json& json, const std::string& why) {
  const auto dashboard = ParseDashboard(json.dump(), "d.json");
  ASSERT_FALSE(dashboard.has_value());
  EXPECT_EQ(dashboard.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(dashboard.error().message(), HasSubstr("dashboard d.json"));
  EXPECT_THAT(dashboard.error().message(), HasSubstr(why));
}

TEST(DashboardFile, ReadsPanelsRowsAndVariables) {
  const auto dashboard = ParseDashboard(OnePanel().dump(), "d.json");
  ASSERT_TRUE(dashboard.has_value()) << dashboard.error().ToString();
  EXPECT_EQ(dashboard->uid, "u");
  ASSERT_EQ(dashboard->variables.size(), 1U);
  EXPECT_EQ(dashboard->variables[0].all_value, ".+");
  ASSERT_EQ(dashboard->rows.size(), 1U);
  ASSERT_EQ(dashboard->panels.size(), 1U);
  const Panel& panel = dashboard->panels[0];
  EXPECT_EQ(panel.kind, PanelKind::kTimeSeries);
  EXPECT_EQ(panel.unit, "bytes");
  EXPECT_TRUE(panel.stacked);
  EXPECT_EQ(panel.min, 0);
  EXPECT_EQ(panel.max, std::nullopt);
  EXPECT_EQ(panel.place.x, 8);
  EXPECT_EQ(panel.targets[0].legend, "{{pod}}");
}

TEST(DashboardFile, ReadsTheColumnsOfATable) {
  Json json = OnePanel();
  json["panels"][1]["type"] = "table";
  json["panels"][1]["targets"][0]["instant"] = true;
  json["panels"][1]["transformations"] = Json::parse(R"([
    {"id": "filterFieldsByName", "options": {"include": {"names": ["Value", "dataset"]}}},
    {"id": "organize", "options": {"indexByName": {"dataset": 0, "Value": 1},
                                   "renameByName": {"dataset": "Dataset"}}}])");
  const auto dashboard = ParseDashboard(json.dump(), "d.json");
  ASSERT_TRUE(dashboard.has_value()) << dashboard.error().ToString();
  const auto& columns = dashboard->panels[0].columns;
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0].label, "dataset");
  EXPECT_EQ(columns[0].heading, "Dataset");
  EXPECT_EQ(columns[1].heading, "Value");
}

TEST(DashboardFile, RefusesWhatItDoesNotDraw) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = OnePanel();
    json[Json::json_pointer(pointer)] = value;
    return json;
  };
  ExpectRefused("no object", "not a JSON object");
  ExpectRefused(with("/uid", ""), "uid");
  ExpectRefused(with("/uid", "../x"), "uid");
  ExpectRefused(with("/panels", 3), "panels are not a list");
  ExpectRefused(with("/panels/1/type", "heatmap"),
                "panel 'P': type 'heatmap' is not drawn; known are row, timeseries, stat");
  ExpectRefused(with("/panels/1/gridPos/w", 17), "/gridPos/w is not a whole number from 1 to 16");
  ExpectRefused(with("/panels/1/gridPos/h", 1e9), "/gridPos/h");
  ExpectRefused(with("/panels/1/targets", Json::array()), "targets are not a list of 1 to 26");
  ExpectRefused(with("/panels/1/targets/0/expr", 1), "/expr is not a text");
  ExpectRefused(with("/panels/1/targets/0/instant", true), "target A cannot be an instant query");
  ExpectRefused(with("/panels/1/type", "stat"), "target A has to be an instant query");
  ExpectRefused(with("/panels/1/repeat", "node"), "repeat is not known");
  ExpectRefused(with("/panels/1/fieldConfig/overrides", {1}), "overrides are not known");
  ExpectRefused(with("/panels/1/fieldConfig/defaults/thresholds", {{"mode", "percentage"}}),
                "thresholds are not absolute");
  ExpectRefused(with("/panels/1/fieldConfig/defaults/mappings", {{{"type", "range"}}}),
                "a mapping is not of type value");
  ExpectRefused(with("/panels/1/transformations", {{{"id", "reduce"}}}), "transformations");
  ExpectRefused(with("/panels/0/collapsed", true), "panel 'Row': collapsed rows");
  ExpectRefused(with("/templating/list/1/type", "custom"), "variable node is of type 'custom'");
}

TEST(DashboardFile, KnowsAllOfThisRelease) {
  EXPECT_EQ(EmbeddedDashboards().size(), 4U);
  for (const EmbeddedDashboard& each : EmbeddedDashboards()) {
    const auto dashboard = ParseDashboard(each.json, std::string(each.name));
    ASSERT_TRUE(dashboard.has_value()) << dashboard.error().ToString();
    EXPECT_EQ(dashboard->uid + ".json", each.name);
  }
}

}  // namespace
}  // namespace optcache::cli
