// Values over time: lines, areas on each other, and states.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "cli/dashboard/panel_parts.h"
#include "cli/terminal/svg.h"
#include "cli/terminal/value_text.h"

namespace optcache::cli {
namespace {

constexpr double kLabelWidth = 62;  // left of a plot
constexpr double kBesidePlot = 8;   // right of it, to the panel's border
constexpr double kTimeHeight = 18;  // below it
constexpr double kKeyRow = 15;
constexpr int kKeyRowsMax = 4;
constexpr double kKeyWidth = 18;
constexpr double kRowNames = 190;  // left of a timeline

using Points = std::vector<std::pair<double, double>>;

// Values to pixels.
struct PanelPlane {
  PanelFrame frame;
  TimeRange range;
  double low = 0;
  double high = 1;

  double X(double at) const {
    const double share = (at - range.from) / (range.to - range.from);
    return frame.left + frame.width * std::clamp(share, 0.0, 1.0);
  }
  double Y(double value) const {
    const double share = (value - low) / (high - low);
    return frame.bottom() - frame.height * std::clamp(share, 0.0, 1.0);
  }
};

// The legend in as few rows as hold it, from `top` on.
struct Legend {
  std::string svg;
  double height = 0;
};

Legend DrawLegend(const std::vector<NamedSeries>& series, const PanelFrame& frame) {
  Legend legend;
  double x = 0;
  int row = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string name = Shortened(series[i].name, frame.width - kKeyWidth);
    const double width = kKeyWidth + kCharacter * static_cast<double>(name.size()) + 10;
    if (x > 0 && x + width > frame.width) {
      x = 0;
      ++row;
    }
    if (row == kKeyRowsMax - 1 && i + 1 < series.size() && x + width + 70 > frame.width) {
      legend.svg +=
          SvgText(frame.left + x, row * kKeyRow, fmt::format("and {} more", series.size() - i));
      break;
    }
    const LineStyle style = LineStyleOf(i);
    legend.svg +=
        fmt::format("<path d=\"M{:.1f} {:.1f}h12\" stroke=\"{}\" stroke-width=\"2.5\"{}/>\n",
                    frame.left + x, row * kKeyRow - 4, style.colour, style.dashes);
    legend.svg += SvgText(frame.left + x + kKeyWidth, row * kKeyRow, name);
    x += width;
  }
  legend.height = (row + 1) * kKeyRow;
  return legend;
}

// Each point on those of the series before it.
std::vector<Points> OnEachOther(const std::vector<NamedSeries>& series) {
  std::vector<Points> tops;
  std::map<double, double> sums;
  for (const NamedSeries& each : series) {
    Points& top = tops.emplace_back();
    for (const auto& [at, value] : each.points)
      top.emplace_back(at, sums[at] += value);
  }
  return tops;
}

std::pair<double, double> Bounds(const Panel& panel, const std::vector<Points>& lines) {
  double low = panel.min.value_or(0);
  double high = panel.max.value_or(0);
  bool any = panel.min.has_value();
  for (const Points& line : lines) {
    for (const auto& [at, value] : line) {
      low = any ? std::min(low, value) : value;
      high = any ? std::max(high, value) : value;
      any = true;
    }
  }
  if (panel.min) low = *panel.min;
  if (panel.max) high = std::max(high, *panel.max);
  if (high - low < 1e-12 * std::max(1.0, std::abs(low))) high = low + 1;
  return {low, high};
}

// Lines end where more than a step and a half has no value.
std::vector<Points> Pieces(const Points& points, double step) {
  std::vector<Points> pieces;
  for (const auto& point : points) {
    if (pieces.empty() || point.first - pieces.back().back().first > 1.5 * step)
      pieces.emplace_back();
    pieces.back().push_back(point);
  }
  return pieces;
}

std::string DrawLine(const PanelPlane& plane, const Points& line, std::size_t i, bool filled) {
  const LineStyle style = LineStyleOf(i);
  std::string svg;
  for (const Points& piece : Pieces(line, plane.range.step)) {
    std::string path;
    for (const auto& [at, value] : piece)
      path += fmt::format("{:.1f},{:.1f} ", plane.X(at), plane.Y(value));
    if (piece.size() == 1) {
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>\n",
                         plane.X(piece[0].first), plane.Y(piece[0].second), style.colour);
      continue;
    }
    path.pop_back();
    if (filled) {
      // White below the colour: areas that lie behind do not shine through.
      const std::string area =
          fmt::format("{} {:.1f},{:.1f} {:.1f},{:.1f}", path, plane.X(piece.back().first),
                      plane.Y(plane.low), plane.X(piece.front().first), plane.Y(plane.low));
      svg += fmt::format(
          "<polygon points=\"{0}\" fill=\"#fff\"/>\n<polygon points=\"{0}\" fill=\"{1}\" "
          "fill-opacity=\"0.35\"/>\n",
          area, style.colour);
    }
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n", path,
        style.colour, style.dashes);
  }
  return svg;
}

std::string DrawValueAxis(const PanelPlane& plane, const std::vector<double>& ticks,
                          const std::string& unit) {
  std::string svg;
  for (const double tick : ticks) {
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" stroke=\"#e4e4e4\"/>\n", plane.frame.left,
                       plane.Y(tick), plane.frame.width);
    svg += SvgText(plane.frame.left - 6, plane.Y(tick) + 4, FormatValue(tick, unit),
                   R"( text-anchor="end")");
  }
  return svg;
}

// Values of one state, one after the other, as bars.
std::string DrawStates(const Panel& panel, const PanelPlane& plane, const Points& points,
                       double top, double height) {
  std::string svg;
  for (const Points& piece : Pieces(points, plane.range.step)) {
    for (std::size_t i = 0; i < piece.size();) {
      std::size_t end = i + 1;
      while (end < piece.size() && piece[end].second == piece[i].second)
        ++end;
      const double until =
          end < piece.size() ? piece[end].first : piece[end - 1].first + plane.range.step / 2;
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
          "<title>{}</title></rect>\n",
          plane.X(piece[i].first), top, std::max(plane.X(until) - plane.X(piece[i].first), 1.0),
          height, ShownColour(panel, piece[i].second),
          SvgEscaped(ShownValue(panel, piece[i].second)));
      i = end;
    }
  }
  return svg;
}

// Which colour is which state, from the right.
std::string DrawStateKeys(const Panel& panel, const PanelFrame& frame, double y) {
  std::string svg;
  double x = frame.left;
  for (const ValueMapping& mapping : panel.mappings) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"10\" fill=\"{}\"/>\n",
                       x, y - 9, ColourOf(mapping.colour));
    svg += SvgText(x + kKeyWidth, y, mapping.text);
    x += kKeyWidth + kCharacter * static_cast<double>(mapping.text.size()) + 14;
  }
  return svg;
}

}  // namespace

std::string DrawTimeAxis(const TimeRange& range, const PanelFrame& frame) {
  const PanelPlane plane{.frame = frame, .range = range};
  std::string svg;
  const int count = std::max(2, static_cast<int>(frame.width / 75));
  for (const TimeTick& tick : TimeTicks(range.from, range.to, count)) {
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}v{:.1f}\" stroke=\"#f0f0f0\"/>\n", plane.X(tick.at),
                       frame.top, frame.height);
    // The last one ends at the edge rather than crosses it.
    const double half = kCharacter * static_cast<double>(tick.text.size()) / 2;
    const bool fits = plane.X(tick.at) + half <= frame.right() + kBesidePlot;
    svg +=
        fits ? SvgText(plane.X(tick.at), frame.bottom() + 14, tick.text, R"( text-anchor="middle")")
             : SvgText(frame.right() + kBesidePlot, frame.bottom() + 14, tick.text,
                       R"( text-anchor="end")");
  }
  return svg;
}

std::string DrawTimeSeries(const Panel& panel, const PanelData& data, const TimeRange& range,
                           const PanelFrame& frame) {
  const Legend legend = DrawLegend(data.series, frame);
  std::vector<Points> lines;
  if (panel.stacked) {
    lines = OnEachOther(data.series);
  } else {
    for (const NamedSeries& each : data.series)
      lines.push_back(each.points);
  }
  const auto [low, high] = Bounds(panel, lines);
  const double height = frame.height - kTimeHeight - legend.height - 6;
  const std::vector<double> ticks =
      AxisTicks(low, high, std::max(2, static_cast<int>(height / 36)), panel.unit);
  const PanelPlane plane{.frame = {.left = frame.left + kLabelWidth,
                                   .top = frame.top,
                                   .width = frame.width - kLabelWidth,
                                   .height = height},
                         .range = range,
                         .low = ticks.front(),
                         .high = ticks.back()};
  std::string svg = DrawTimeAxis(range, plane.frame) + DrawValueAxis(plane, ticks, panel.unit);
  // The first series last, so that it lies on top; of areas the highest first.
  for (std::size_t i = std::min(lines.size(), kDrawnSeriesMax); i-- > 0;)
    svg += DrawLine(plane, lines[i], i, panel.stacked);
  return svg + fmt::format("<g transform=\"translate(0 {:.1f})\">\n{}</g>\n",
                           frame.bottom() - legend.height + kKeyRow - 2, legend.svg);
}

std::string DrawStateTimeline(const Panel& panel, const PanelData& data, const TimeRange& range,
                              const PanelFrame& frame) {
  const std::size_t rows = std::min(data.series.size(), kDrawnSeriesMax);
  const double keys = panel.mappings.empty() ? 0 : kKeyRow;
  const double height = frame.height - kTimeHeight - keys - 4;
  const double names = std::min(kRowNames, frame.width / 2);
  const PanelPlane plane{.frame = {.left = frame.left + names,
                                   .top = frame.top,
                                   .width = frame.width - names,
                                   .height = height},
                         .range = range};
  std::string svg = DrawTimeAxis(range, plane.frame);
  const double row = std::min(30.0, height / static_cast<double>(std::max<std::size_t>(rows, 1)));
  for (std::size_t i = 0; i < rows; ++i) {
    const double top = frame.top + row * static_cast<double>(i);
    svg += SvgText(plane.frame.left - 6, top + row / 2 + 4,
                   Shortened(data.series[i].name, names - 8), R"( text-anchor="end")");
    svg += DrawStates(panel, plane, data.series[i].points, top + row * .1, row * .8);
  }
  if (rows < data.series.size()) {
    svg += SvgText(frame.right(), frame.bottom(),
                   fmt::format("and {} more", data.series.size() - rows), R"( text-anchor="end")");
  }
  return svg + DrawStateKeys(panel, plane.frame, frame.bottom() - 1);
}

}  // namespace optcache::cli
