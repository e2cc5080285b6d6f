#include "cli/simulate/simulate_charts.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "cli/terminal/svg_chart.h"

namespace optcache::cli {
namespace {

Series SeriesOf(std::string_view name, std::span<const double> xs, std::span<const double> ys) {
  Series series{.name = std::string(name), .points = {}};
  for (std::size_t i = 0; i < xs.size(); ++i)
    series.points.emplace_back(xs[i], ys[i]);
  return series;
}

}  // namespace

std::string DrawSimulation(const std::vector<PlottedPolicy>& policies, double capacity) {
  constexpr std::array kTenths{.05, .15, .25, .35, .45, .55, .65, .75, .85, .95};
  Chart by_capacity{.title = "Hit ratio by capacity",
                    .x_label = "capacity / dataset",
                    .y_label = "hit ratio",
                    .series = {}};
  Chart by_position{.title = fmt::format("Over the epoch, capacity {:.3g}", capacity),
                    .x_label = "position in the epoch",
                    .y_label = "hit ratio",
                    .series = {}};
  Chart by_bandwidth{.title = fmt::format("Epoch time, capacity {:.3g}", capacity),
                     .x_label = "store bandwidth / demand",
                     .y_label = "epoch time / compute time",
                     .x_min = .2,
                     .x_max = 1.2,
                     .y_min = 1,
                     .y_max = 2,
                     .series = {}};
  for (const PlottedPolicy& policy : policies) {
    by_capacity.series.push_back(
        SeriesOf(policy.name, kPlottedCapacities, policy.hits_by_capacity));
    by_position.series.push_back(SeriesOf(policy.name, kTenths, policy.hits_by_tenth));
    by_bandwidth.series.push_back(
        SeriesOf(policy.name, kPlottedBandwidths, policy.epoch_time_by_bandwidth));
    for (const double time : policy.epoch_time_by_bandwidth)
      by_bandwidth.y_max = std::max(by_bandwidth.y_max, std::ceil(time * 2) / 2);
  }
  return DrawCharts({by_capacity, by_position, by_bandwidth});
}

}  // namespace optcache::cli
