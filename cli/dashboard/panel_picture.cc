#include "cli/dashboard/panel_picture.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/dashboard/panel_parts.h"
#include "cli/terminal/svg.h"
#include "cli/terminal/value_text.h"

namespace optcache::cli {
namespace {

// Pixels of Grafana's grid, and between two panels.
constexpr double kColumn = 60;
constexpr double kRow = 36;
constexpr double kGap = 8;
constexpr double kHead = 64;
constexpr double kInside = 10;
constexpr double kTitle = 26;

PictureSize SizeOf(const Panel& panel) {
  return {.width = kColumn * panel.place.width - kGap, .height = kRow * panel.place.height - kGap};
}

std::string Inside(const Panel& panel, const PanelData& data, const TimeRange& range,
                   const PanelFrame& frame) {
  switch (panel.kind) {
    case PanelKind::kTimeSeries:
      return DrawTimeSeries(panel, data, range, frame);
    case PanelKind::kStateTimeline:
      return DrawStateTimeline(panel, data, range, frame);
    case PanelKind::kStat:
      return DrawStat(panel, data, frame);
    case PanelKind::kGauge:
      return DrawGauge(panel, data, frame);
    case PanelKind::kTable:
      return DrawTable(panel, data, frame);
  }
  return "";
}

bool HasPoints(const PanelData& data) {
  return std::ranges::any_of(data.series,
                             [](const NamedSeries& series) { return !series.points.empty(); });
}

std::string SvgFile(PictureSize size, const std::string& inside) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\" "
      "fill=\"#1f2328\">\n<rect width=\"100%\" height=\"100%\" fill=\"#f4f5f5\"/>\n{2}</svg>\n",
      size.width, size.height, inside);
}

std::string Placed(double x, double y, const std::string& inside) {
  return fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n{}</g>\n", x, y, inside);
}

}  // namespace

std::string DrawPanel(const Panel& panel, const PanelData& data, const TimeRange& range,
                      PictureSize size) {
  const PanelFrame frame{.left = kInside,
                         .top = kTitle + 6,
                         .width = size.width - 2 * kInside,
                         .height = size.height - kTitle - 6 - kInside};
  std::string svg = fmt::format(
      "<rect width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"#fff\" stroke=\"#dadada\">"
      "<title>{}</title></rect>\n",
      size.width, size.height, SvgEscaped(panel.description));
  svg += SvgText(kInside, 18, Shortened(panel.title, frame.width),
                 R"( font-size="13" font-weight="bold")");
  if (HasPoints(data)) return svg + Inside(panel, data, range, frame);
  return svg + SvgText(size.width / 2, frame.top + frame.height / 2, "no data",
                       R"( text-anchor="middle" fill="#888")");
}

std::string DrawPanelFile(const Panel& panel, const PanelData& data, const TimeRange& range) {
  const PictureSize size = SizeOf(panel);
  return SvgFile({.width = size.width + 2 * kGap, .height = size.height + 2 * kGap},
                 Placed(kGap, kGap, DrawPanel(panel, data, range, size)));
}

std::string DrawDashboardPage(const Dashboard& dashboard, const std::vector<PanelData>& data,
                              const TimeRange& range, const std::string& chosen) {
  std::string svg = SvgText(kGap, 26, dashboard.title, R"( font-size="20" font-weight="bold")");
  svg += SvgText(kGap, 48,
                 fmt::format("{} – {}{}{}", FormatMoment(range.from), FormatMoment(range.to),
                             chosen.empty() ? "" : "  ·  ", chosen),
                 R"( font-size="12" fill="#57606a")");
  int rows = 0;
  for (const PanelRow& row : dashboard.rows) {
    rows = std::max(rows, row.y + 1);
    svg += SvgText(kGap, kHead + kRow * row.y + 22, row.title,
                   R"( font-size="15" font-weight="bold")");
  }
  for (std::size_t i = 0; i < dashboard.panels.size(); ++i) {
    const Panel& panel = dashboard.panels[i];
    rows = std::max(rows, panel.place.y + panel.place.height);
    svg += Placed(kGap + kColumn * panel.place.x, kHead + kRow * panel.place.y,
                  DrawPanel(panel, data[i], range, SizeOf(panel)));
  }
  return SvgFile({.width = kColumn * 24 + kGap, .height = kHead + kRow * rows + kGap}, svg);
}

}  // namespace optcache::cli
