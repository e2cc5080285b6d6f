#include "cli/terminal/svg_chart.h"

#include <gtest/gtest.h>

#include "cli/terminal/svg.h"

namespace optcache::cli {
namespace {

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(SvgChart, DrawsALineASeriesAndNamesItOnce) {
  const Chart chart{.title = "a < b & c",
                    .x_label = "x",
                    .y_label = "y",
                    .series = {{.name = "ours", .points = {{0, 0}, {.5, 1}, {1, .5}}},
                               {.name = "theirs", .points = {{0, 1}, {1, 2}}}}};
  const std::string svg = DrawCharts({chart, chart});
  EXPECT_EQ(CountOf(svg, "<polyline"), 4U);
  EXPECT_EQ(CountOf(svg, ">ours</text>"), 1U);
  EXPECT_EQ(CountOf(svg, ">theirs</text>"), 1U);
  EXPECT_EQ(CountOf(svg, "a &lt; b &amp; c"), 2U);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

// From the lower left corner over the top to the right edge; what is too large stays at the edge.
TEST(SvgChart, PutsPointsWhereTheAxesSay) {
  const Chart chart{.title = "t",
                    .x_label = "x",
                    .y_label = "y",
                    .x_min = 1,
                    .x_max = 3,
                    .y_min = 10,
                    .y_max = 20,
                    .series = {{.name = "s", .points = {{1, 10}, {2, 20}, {3, 99}}}}};
  EXPECT_NE(DrawCharts({chart}).find("points=\"56.0,280.0 206.0,40.0 356.0,40.0\""),
            std::string::npos);
}

TEST(SvgChart, MarksAPointInTheColourOfItsSeries) {
  const Chart chart{
      .title = "t",
      .x_label = "x",
      .y_label = "y",
      .series = {{.name = "a", .points = {{0, 0}}}, {.name = "b", .points = {{0, 0}}}},
      .marks = {{.series = "b", .x = .5, .y = 1}}};
  const std::string svg = DrawCharts({chart});
  const std::string colour(LineStyleOf(1).colour);
  EXPECT_NE(svg.find("<circle cx=\"206.0\" cy=\"40.0\" r=\"4\" fill=\"" + colour + "\"/>"),
            std::string::npos)
      << svg;
}

}  // namespace
}  // namespace optcache::cli
