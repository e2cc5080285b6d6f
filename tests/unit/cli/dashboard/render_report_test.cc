#include "cli/dashboard/render_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<RenderedDashboard> Rendered() {
  RenderedDashboard one;
  one.dashboard.uid = "optcache-nodes";
  one.dashboard.title = "Nodes";
  one.file = "optcache-nodes.svg";
  Panel panel;
  panel.id = 7;
  panel.title = "Load balance (busiest / mean)";
  panel.unit = "short";
  one.dashboard.panels = {panel, panel};
  one.dashboard.panels[1].title = "Up";
  one.panels.push_back({.targets = {{.ref = "A", .query = "up", .series = 2, .points = 9}},
                        .file = PanelFileName(one.dashboard, panel),
                        .data = {}});
  one.panels.push_back({.targets = {{.ref = "A", .query = "down"}}, .file = "f", .data = {}});
  return {one};
}

TEST(RenderReport, NamesFilesByPanel) {
  EXPECT_EQ(Rendered()[0].panels[0].file, "optcache-nodes/07-load-balance-busiest-mean.svg");
}

TEST(RenderReport, TellsProgramsWhatWasAskedAndFound) {
  const auto json =
      nlohmann::json::parse(ReportAsJson(Rendered(), {.from = 1, .to = 2, .step = 1}));
  const auto& panel = json["dashboards"][0]["panels"][0];
  EXPECT_EQ(json["to"], 2);
  EXPECT_EQ(panel["title"], "Load balance (busiest / mean)");
  EXPECT_EQ(panel["type"], "timeseries");
  EXPECT_EQ(panel["empty"], false);
  EXPECT_EQ(panel["targets"][0]["query"], "up");
  EXPECT_EQ(panel["targets"][0]["series"], 2);
  EXPECT_EQ(panel["targets"][0]["points"], 9);
  EXPECT_EQ(json["dashboards"][0]["panels"][1]["empty"], true);
}

TEST(RenderReport, ListsPanelsWithoutData) {
  EXPECT_THAT(EmptyPanels(Rendered()), ElementsAre("Nodes / Up"));
  const std::string text = ReportAsText(Rendered(), "out");
  EXPECT_THAT(text, HasSubstr("out/optcache-nodes.svg: 2 panels"));
  EXPECT_THAT(text, HasSubstr("1 panels have no data:\n  Nodes / Up\n"));
}

}  // namespace
}  // namespace optcache::cli
