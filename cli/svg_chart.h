#pragma once

// Line charts as SVG, side by side over one legend. Pure text: no font is measured, no file
// written.

#include <string>
#include <utility>
#include <vector>

namespace optcache::cli {

struct Series {
  std::string name;  // what the legend says; series of one name have one colour in all charts
  std::vector<std::pair<double, double>> points;  // by x, rising
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  double x_min = 0;
  double x_max = 1;
  double y_min = 0;
  double y_max = 1;
  std::vector<Series> series;
};

// Axes have round ticks, and the vertical one ends at such. Points outside a chart's range are
// drawn at its edge.
std::string DrawCharts(const std::vector<Chart>& charts);

}  // namespace optcache::cli
