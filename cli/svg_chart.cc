#include "cli/svg_chart.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

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
constexpr int kTicks = 5;

// Okabe and Ito's, which people tell apart who see fewer colours, then the same dashed.
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#555555"};

struct Style {
  std::string_view colour;
  std::string_view dashes;
  double width;
};

Style StyleOf(std::size_t i) {
  return {.colour = kColours[i % kColours.size()],
          .dashes = i < kColours.size() ? "" : R"( stroke-dasharray="5 3")",
          .width = i == 0 ? 2.5 : 1.5};
}

std::string SvgEscaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string SvgText(double x, double y, std::string_view text, std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, SvgEscaped(text));
}

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

std::string Axes(const Plane& plane) {
  const Chart& chart = plane.chart;
  const double bottom = kTop + kPlotHeight;
  const double middle = plane.left + kPlotWidth / 2;
  std::string svg = SvgText(middle, kTop - 16, chart.title,
                            R"( text-anchor="middle" font-size="14" font-weight="bold")");
  for (int i = 0; i <= kTicks; ++i) {
    const double share = static_cast<double>(i) / kTicks;
    const double x = chart.x_min + share * (chart.x_max - chart.x_min);
    const double y = chart.y_min + share * (chart.y_max - chart.y_min);
    svg += fmt::format(
        "<path d=\"M{:.1f} {:.1f}h{:.1f}M{:.1f} {:.1f}v{:.1f}\" stroke=\"#ddd\" fill=\"none\"/>\n",
        plane.left, plane.Y(y), kPlotWidth, plane.X(x), kTop, kPlotHeight);
    svg += SvgText(plane.X(x), bottom + 16, fmt::format("{:.3g}", x), R"( text-anchor="middle")");
    svg +=
        SvgText(plane.left - 6, plane.Y(y) + 4, fmt::format("{:.3g}", y), R"( text-anchor="end")");
  }
  svg += SvgText(middle, bottom + 36, chart.x_label, R"( text-anchor="middle")");
  const double centre = kTop + kPlotHeight / 2;
  svg += SvgText(plane.left - 40, centre, chart.y_label,
                 fmt::format(" text-anchor=\"middle\" transform=\"rotate(-90 {:.1f} {:.1f})\"",
                             plane.left - 40, centre));
  return svg;
}

std::string SvgLine(const Plane& plane, const Series& series, const Style& style) {
  std::string points;
  for (const auto& [x, y] : series.points)
    points += fmt::format("{:.1f},{:.1f} ", plane.X(x), plane.Y(y));
  if (!points.empty()) points.pop_back();
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", points,
      style.colour, style.width, style.dashes);
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
    const Plane plane{.chart = charts[i], .left = kCell * static_cast<double>(i) + kLeft};
    svg += Axes(plane);
    // The first series last, so that it lies on top.
    for (std::size_t s = charts[i].series.size(); s-- > 0;) {
      const Series& series = charts[i].series[s];
      const auto name = std::find(names.begin(), names.end(), series.name);
      svg += SvgLine(plane, series, StyleOf(static_cast<std::size_t>(name - names.begin())));
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Style style = StyleOf(i);
    const double x = kLeft + kLegendColumn * static_cast<double>(i % columns);
    const double y = legend + kLegendRow * static_cast<double>(i / columns) + 10;
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h24\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", x,
                       y - 4, style.colour, style.width, style.dashes);
    svg += SvgText(x + 30, y, names[i]);
  }
  return svg + "</svg>\n";
}

}  // namespace optcache::cli
