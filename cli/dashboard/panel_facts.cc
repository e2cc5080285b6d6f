// Values of one moment: numbers, gauges and tables.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"
#include "cli/dashboard/panel_parts.h"
#include "cli/terminal/svg.h"
#include "cli/terminal/value_text.h"

namespace optcache::cli {
namespace {

constexpr std::size_t kStatRowsMax = 5;
constexpr double kTableRow = 18;
constexpr std::string_view kPlain = "#1f2328";

double Middle(double from, double size) {
  return from + size / 2;
}

std::string Arc(double x, double y, double radius, double share, std::string_view colour) {
  const double angle = std::numbers::pi * (1 - std::clamp(share, 0.0, 1.0));
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f}A{:.1f} {:.1f} 0 0 1 {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
      "stroke-width=\"14\"/>\n",
      x - radius, y, radius, radius, x + radius * std::cos(angle), y - radius * std::sin(angle),
      colour);
}

std::string Cell(const Panel& panel, const TableColumn& column, const NamedSeries& series) {
  if (column.label == "Value")
    return series.points.empty() ? "" : FormatValue(series.points.back().second, panel.unit);
  const auto found = series.labels.find(column.label);
  return found == series.labels.end() ? "" : found->second;
}

}  // namespace

std::string_view ColourOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kColours{{
      {"green", "#009e73"},
      {"red", "#d55e00"},
      {"orange", "#e69f00"},
      {"blue", "#0072b2"},
      {"text", "#c8c8c8"},
      {"transparent", "none"},
  }};
  for (const auto& [known, colour] : kColours) {
    if (known == name) return colour;
  }
  return "#555555";
}

std::string ShownValue(const Panel& panel, double value) {
  const std::string number = fmt::format("{}", value);
  for (const ValueMapping& mapping : panel.mappings) {
    if (mapping.value == number) return mapping.text;
  }
  return FormatValue(value, panel.unit);
}

std::string_view ShownColour(const Panel& panel, double value) {
  const std::string number = fmt::format("{}", value);
  for (const ValueMapping& mapping : panel.mappings) {
    if (mapping.value == number) return ColourOf(mapping.colour);
  }
  std::string_view colour = kPlain;
  for (const ColourStep& step : panel.steps) {
    if (!step.from || value >= *step.from) colour = ColourOf(step.colour);
  }
  return colour;
}

std::string Shortened(std::string_view text, double width) {
  const auto most = static_cast<std::size_t>(std::max(width / kCharacter, 4.0));
  if (text.size() <= most) return std::string(text);
  return CutText(std::string(text), most - 1) + "…";
}

std::string DrawStat(const Panel& panel, const PanelData& data, const PanelFrame& frame) {
  const std::size_t rows = std::min(data.series.size(), kStatRowsMax);
  const double row = frame.height / static_cast<double>(std::max<std::size_t>(rows, 1));
  std::string svg;
  for (std::size_t i = 0; i < rows; ++i) {
    const NamedSeries& series = data.series[i];
    if (series.points.empty()) continue;
    const double value = series.points.back().second;
    const double y = frame.top + row * (static_cast<double>(i) + .5);
    const std::string style =
        fmt::format(" text-anchor=\"middle\" font-size=\"{:.0f}\" font-weight=\"bold\" fill=\"{}\"",
                    std::min(34.0, row * .5), ShownColour(panel, value));
    svg += SvgText(Middle(frame.left, frame.width), y + std::min(34.0, row * .5) * .3,
                   ShownValue(panel, value), style);
    if (rows > 1) svg += SvgText(frame.left, y + 4, Shortened(series.name, frame.width / 3));
  }
  return svg;
}

std::string DrawGauge(const Panel& panel, const PanelData& data, const PanelFrame& frame) {
  if (data.series.empty() || data.series.front().points.empty()) return "";
  const double value = data.series.front().points.back().second;
  const double low = panel.min.value_or(0);
  const double high = std::max(panel.max.value_or(1), low + 1e-12);
  const double x = Middle(frame.left, frame.width);
  const double radius = std::min(frame.width / 2 - 12, frame.height - 22);
  const double y = frame.top + 8 + radius;
  return Arc(x, y, radius, 1, "#e4e4e4") +
         Arc(x, y, radius, (value - low) / (high - low), ShownColour(panel, value)) +
         SvgText(x, y - 2, FormatValue(value, panel.unit),
                 R"( text-anchor="middle" font-size="22" font-weight="bold")");
}

std::string DrawTable(const Panel& panel, const PanelData& data, const PanelFrame& frame) {
  const double column = frame.width / static_cast<double>(panel.columns.size());
  const auto fits = static_cast<std::size_t>(frame.height / kTableRow) - 1;
  std::string svg;
  for (std::size_t c = 0; c < panel.columns.size(); ++c) {
    const double x = frame.left + column * static_cast<double>(c);
    svg += SvgText(x, frame.top + 12, Shortened(panel.columns[c].heading, column - 6),
                   R"( font-weight="bold")");
    for (std::size_t r = 0; r < std::min(fits, data.series.size()); ++r) {
      const double y = frame.top + 12 + kTableRow * static_cast<double>(r + 1);
      const bool rest = r + 1 == fits && data.series.size() > fits;
      const std::string text =
          rest ? (c == 0 ? fmt::format("and {} more", data.series.size() - r) : "")
               : Cell(panel, panel.columns[c], data.series[r]);
      svg += SvgText(x, y, Shortened(text, column - 6));
    }
  }
  return svg;
}

}  // namespace optcache::cli
