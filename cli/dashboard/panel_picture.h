#pragma once

// Panels and whole dashboards as SVG. Pure text: no font is measured, no file written.

#include <string>
#include <utility>
#include <vector>

#include "cli/dashboard/dashboard_file.h"
#include "cli/dashboard/prometheus.h"

namespace optcache::cli {

struct NamedSeries {
  std::string name;  // by the target's legend
  SeriesLabels labels;
  std::vector<std::pair<double, double>> points;
};

struct PanelData {
  std::vector<NamedSeries> series;  // of all targets, in their order
};

struct PictureSize {
  double width = 0;
  double height = 0;
};

// More are counted, not drawn.
inline constexpr std::size_t kDrawnSeriesMax = 40;

// Elements for a picture whose upper left corner is 0, 0.
std::string DrawPanel(const Panel& panel, const PanelData& data, const TimeRange& range,
                      PictureSize size);

// A file of its own.
std::string DrawPanelFile(const Panel& panel, const PanelData& data, const TimeRange& range);

// All panels where the grid says; `data` in the order of the dashboard's panels. `chosen` says what
// the variables stand for.
std::string DrawDashboardPage(const Dashboard& dashboard, const std::vector<PanelData>& data,
                              const TimeRange& range, const std::string& chosen);

}  // namespace optcache::cli
