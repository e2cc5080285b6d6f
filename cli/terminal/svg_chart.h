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

// A point that matters, in its series' colour.
struct Mark {
  std::string series;
  double x = 0;
  double y = 0;
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
  std::vector<Mark> marks;
};

// Axes have round ticks, and the vertical one ends at such. Points outside a chart's range are
// drawn at its edge.
std::string DrawCharts(const std::vector<Chart>& charts);

}  // namespace optcache::cli
