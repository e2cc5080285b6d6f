#include "cli/dashboard/panel_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr TimeRange kRange{.from = 0, .to = 100, .step = 10};
constexpr PictureSize kSize{.width = 480, .height = 290};

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

Panel OfKind(PanelKind kind) {
  Panel panel;
  panel.id = 3;
  panel.kind = kind;
  panel.title = "Hits & misses";
  panel.description = "What <hits>.";
  panel.unit = "percentunit";
  panel.place = {.x = 0, .y = 0, .width = 8, .height = 8};
  return panel;
}

NamedSeries Line(const std::string& name, std::vector<std::pair<double, double>> points) {
  return {.name = name, .labels = {}, .points = std::move(points)};
}

TEST(PanelPicture, DrawsALineASeriesWithLegendAndAxes) {
  const PanelData data{
      {Line("observed", {{0, 0}, {10, .5}, {20, 1}}), Line("b", {{0, 1}, {10, 0}})}};
  const std::string svg = DrawPanel(OfKind(PanelKind::kTimeSeries), data, kRange, kSize);
  EXPECT_EQ(Count(svg, "<polyline"), 2U);
  EXPECT_THAT(svg, HasSubstr(">observed</text>"));
  EXPECT_THAT(svg, HasSubstr(">100 %</text>"));
  EXPECT_THAT(svg, HasSubstr(">Hits &amp; misses</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>What &lt;hits&gt;.</title>"));
  EXPECT_THAT(svg, HasSubstr(">00:00:30</text>"));
}

// From left to right edge of the plot, which begins after the labels.
TEST(PanelPicture, PutsPointsWhereTheAxesSay) {
  Panel panel = OfKind(PanelKind::kTimeSeries);
  panel.min = 0;
  panel.max = 1;
  const PanelData data{{Line("a", {{0, 0}, {50, 0}, {100, 1}})}};
  const std::string svg =
      DrawPanel(panel, data, {.from = 0, .to = 100, .step = 50}, {.width = 182, .height = 181});
  EXPECT_THAT(svg, HasSubstr("points=\"72.0,132.0 122.0,132.0 172.0,32.0\""));
}

TEST(PanelPicture, TheLastTimeStaysWithinThePanel) {
  Panel panel = OfKind(PanelKind::kTimeSeries);
  const PanelData data{{Line("a", {{0, 0}, {60, 1}})}};
  const std::string svg =
      DrawPanel(panel, data, {.from = 0, .to = 60, .step = 10}, {.width = 480, .height = 290});
  EXPECT_THAT(svg, ::testing::ContainsRegex("x=\"478.0\"[^>]* text-anchor=\"end\">00:01"));
}

TEST(PanelPicture, BreaksALineWhereValuesAreMissing) {
  const PanelData data{{Line("a", {{0, 0}, {10, 1}, {50, 1}, {60, 1}, {90, 1}})}};
  const std::string svg = DrawPanel(OfKind(PanelKind::kTimeSeries), data, kRange, kSize);
  EXPECT_EQ(Count(svg, "<polyline"), 2U);
  EXPECT_EQ(Count(svg, "<circle"), 1U) << "one value alone";
}

TEST(PanelPicture, StacksAreas) {
  Panel panel = OfKind(PanelKind::kTimeSeries);
  panel.unit = "short";
  panel.min = 0;
  panel.stacked = true;
  const PanelData data{{Line("a", {{0, 4}, {10, 4}}), Line("b", {{0, 4}, {10, 4}})}};
  const std::string svg = DrawPanel(panel, data, kRange, kSize);
  EXPECT_EQ(Count(svg, "fill-opacity=\"0.35\""), 2U);
  EXPECT_THAT(svg, HasSubstr(">8</text>"));
}

TEST(PanelPicture, SaysHowManySeriesDoNotFit) {
  PanelData data;
  for (int i = 0; i < 100; ++i)
    data.series.push_back(
        Line("a series with a long name " + std::to_string(i), {{0, 1}, {10, 1}}));
  const std::string svg = DrawPanel(OfKind(PanelKind::kTimeSeries), data, kRange, kSize);
  EXPECT_EQ(Count(svg, "<polyline"), kDrawnSeriesMax);
  EXPECT_THAT(svg, HasSubstr(" more</text>"));
}

TEST(PanelPicture, ShowsTheLastValueOfAStatAndWhatItMeans) {
  Panel panel = OfKind(PanelKind::kStat);
  panel.steps = {{.from = std::nullopt, .colour = "green"}, {.from = 0.5, .colour = "red"}};
  std::string svg = DrawPanel(panel, {{Line("a", {{0, .1}, {10, .7}})}}, kRange, kSize);
  EXPECT_THAT(svg, HasSubstr(">70 %</text>"));
  EXPECT_THAT(svg, HasSubstr("#d55e00"));
  panel.mappings = {{.value = "1", .text = "differ", .colour = "red"}};
  svg = DrawPanel(panel, {{Line("a", {{0, 1}})}}, kRange, kSize);
  EXPECT_THAT(svg, HasSubstr(">differ</text>"));
}

TEST(PanelPicture, DrawsAGauge) {
  const std::string svg =
      DrawPanel(OfKind(PanelKind::kGauge), {{Line("a", {{0, .25}})}}, kRange, kSize);
  EXPECT_EQ(Count(svg, "stroke-width=\"14\""), 2U);
  EXPECT_THAT(svg, HasSubstr(">25 %</text>"));
}

TEST(PanelPicture, DrawsStatesAsBars) {
  Panel panel = OfKind(PanelKind::kStateTimeline);
  panel.mappings = {{.value = "1", .text = "up", .colour = "green"},
                    {.value = "0", .text = "down", .colour = "red"}};
  const PanelData data{{Line("n1", {{0, 1}, {10, 1}, {20, 0}, {30, 1}}), Line("n2", {{0, 1}})}};
  const std::string svg = DrawPanel(panel, data, kRange, kSize);
  EXPECT_EQ(Count(svg, "<title>up</title>"), 3U);
  EXPECT_EQ(Count(svg, "<title>down</title>"), 1U);
  EXPECT_THAT(svg, HasSubstr(">n1</text>"));
}

TEST(PanelPicture, DrawsATableAndSaysWhatDoesNotFit) {
  Panel panel = OfKind(PanelKind::kTable);
  panel.unit = "none";
  panel.columns = {{.label = "dataset", .heading = "Dataset"},
                   {.label = "Value", .heading = "Pass"}};
  PanelData data;
  for (int i = 0; i < 50; ++i) {
    data.series.push_back({.name = "",
                           .labels = {{"dataset", "d" + std::to_string(i)}},
                           .points = {{0, static_cast<double>(i)}}});
  }
  const std::string svg = DrawPanel(panel, data, kRange, kSize);
  EXPECT_THAT(svg, HasSubstr(">Dataset</text>"));
  EXPECT_THAT(svg, HasSubstr(">d0</text>"));
  EXPECT_THAT(svg, HasSubstr(" more</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">d49</text>")));
}

TEST(PanelPicture, SaysWhenThereIsNoData) {
  for (const auto kind : {PanelKind::kTimeSeries, PanelKind::kStat, PanelKind::kGauge,
                          PanelKind::kTable, PanelKind::kStateTimeline}) {
    EXPECT_THAT(DrawPanelFile(OfKind(kind), {}, kRange), HasSubstr(">no data</text>"));
  }
}

TEST(PanelPicture, APageHasAllPanelsAndSaysWhatItShows) {
  Dashboard dashboard{.uid = "u",
                      .title = "Nodes",
                      .description = "",
                      .variables = {},
                      .rows = {{.title = "First", .y = 0}},
                      .panels = {OfKind(PanelKind::kStat), OfKind(PanelKind::kTimeSeries)}};
  dashboard.panels[1].title = "Second";
  const std::string svg = DrawDashboardPage(
      dashboard, {{{Line("a", {{0, 1}})}}, {{Line("b", {{0, 1}})}}}, kRange, "node n1");
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* text : {"Nodes", "First", "Hits &amp; misses", "Second", "node n1",
                           "1970-01-01 00:00:00 UTC – 1970-01-01 00:01:40 UTC"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

}  // namespace
}  // namespace optcache::cli
