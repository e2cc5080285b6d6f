#include "cli/terminal/svg_chart.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "cli/terminal/svg.h"
#include "cli/terminal/value_text.h"

namespace optcache::cli {
namespace {

// Pixels.
constexpr double kPlotWidth = 300;
constexpr double kPlotHeight = 240;
constexpr double kLeft = 56;  // of a plot's left edge, for its labels
constexpr double kTop = 40;
constexpr double kBelow = 50;
constexpr double kCell = kLeft + kPlotWidth + 24;  // from one chart to the next
constexpr double kLegendRow = 18;
constexpr double kLegendColumn = 130;
constexpr double kMarkRadius = 4;
constexpr int kTicks = 5;
constexpr double kRounding = 1e-9;

// From a chart's numbers to pixels.
struct Plane {
  const Chart& chart;
  double left;

  double X(double x) const {
    const double share = (x - chart.x_min) / (chart.x_max - chart.x_min);
    return left + kPlotWidth * std::clamp(share, 0.0, 1.0);
  }
  double Y(double y) const {
    const double share = (y - chart.y_min) / (chart.y_max - chart.y_min);
    return kTop + kPlotHeight * (1 - std::clamp(share, 0.0, 1.0));
  }
};

// From one round value to another.
Chart Rounded(Chart chart) {
  const std::vector<double> ticks = AxisTicks(chart.y_min, chart.y_max, kTicks, "none");
  chart.y_min = ticks.front();
  chart.y_max = ticks.back();
  return chart;
}

std::string Axes(const Plane& plane) {
  const Chart& chart = plane.chart;
  const double bottom = kTop + kPlotHeight;
  const double middle = plane.left + kPlotWidth / 2;
  std::string svg = SvgText(middle, kTop - 16, chart.title,
                            R"( text-anchor="middle" font-size="14" font-weight="bold")");
  for (const double x : AxisTicks(chart.x_min, chart.x_max, kTicks, "none")) {
    if (x < chart.x_min || x > chart.x_max * (1 + kRounding)) continue;
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}v{:.1f}\" stroke=\"#ddd\"/>\n", plane.X(x), kTop,
                       kPlotHeight);
    svg += SvgText(plane.X(x), bottom + 16, fmt::format("{:.4g}", x), R"( text-anchor="middle")");
  }
  for (const double y : AxisTicks(chart.y_min, chart.y_max, kTicks, "none")) {
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#ddd\"/>\n", plane.left,
                       plane.Y(y), kPlotWidth);
    svg +=
        SvgText(plane.left - 6, plane.Y(y) + 4, fmt::format("{:.4g}", y), R"( text-anchor="end")");
  }
  svg += SvgText(middle, bottom + 36, chart.x_label, R"( text-anchor="middle")");
  const double centre = kTop + kPlotHeight / 2;
  svg += SvgText(plane.left - 40, centre, chart.y_label,
                 fmt::format(" text-anchor=\"middle\" transform=\"rotate(-90 {:.1f} {:.1f})\"",
                             plane.left - 40, centre));
  return svg;
}

std::string SvgLine(const Plane& plane, const Series& series, const LineStyle& style) {
  std::string points;
  for (const auto& [x, y] : series.points)
    points += fmt::format("{:.1f},{:.1f} ", plane.X(x), plane.Y(y));
  if (!points.empty()) points.pop_back();
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", points,
      style.colour, style.width, style.dashes);
}

std::string SvgMark(const Plane& plane, const Mark& mark, const LineStyle& style) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n",
                     plane.X(mark.x), plane.Y(mark.y), kMarkRadius, style.colour);
}

std::vector<std::string> NamesOf(const std::vector<Chart>& charts) {
  std::vector<std::string> names;
  for (const Chart& chart : charts) {
    for (const Series& series : chart.series) {
      if (std::find(names.begin(), names.end(), series.name) == names.end())
        names.push_back(series.name);
    }
  }
  return names;
}

}  // namespace

std::string DrawCharts(const std::vector<Chart>& charts) {
  const std::vector<std::string> names = NamesOf(charts);
  const auto style_of = [&names](const std::string& series) {
    const auto name = std::find(names.begin(), names.end(), series);
    return LineStyleOf(static_cast<std::size_t>(name - names.begin()));
  };
  const double width = kCell * static_cast<double>(std::max<std::size_t>(charts.size(), 1));
  const auto columns = static_cast<std::size_t>((width - kLeft) / kLegendColumn);
  const std::size_t rows = (names.size() + columns - 1) / columns;
  const double legend = kTop + kPlotHeight + kBelow;
  const double height = legend + kLegendRow * static_cast<double>(rows) + 8;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const Chart chart = Rounded(charts[i]);
    const Plane plane{.chart = chart, .left = kCell * static_cast<double>(i) + kLeft};
    svg += Axes(plane);
    // The first series last, so that it lies on top.
    for (std::size_t s = charts[i].series.size(); s-- > 0;) {
      const Series& series = charts[i].series[s];
      svg += SvgLine(plane, series, style_of(series.name));
    }
    for (const Mark& mark : charts[i].marks)
      svg += SvgMark(plane, mark, style_of(mark.series));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const LineStyle style = LineStyleOf(i);
    const double x = kLeft + kLegendColumn * static_cast<double>(i % columns);
    const double y = legend + kLegendRow * static_cast<double>(i / columns) + 10;
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h24\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", x,
                       y - 4, style.colour, style.width, style.dashes);
    svg += SvgText(x + 30, y, names[i]);
  }
  return svg + "</svg>\n";
}

}  // namespace optcache::cli
