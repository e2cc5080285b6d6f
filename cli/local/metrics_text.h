#pragma once

// A page of metrics in Prometheus's text format, as our programs serve it.

#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace optcache::cli {

struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
  friend bool operator==(const MetricSample&, const MetricSample&) = default;
};

// In the order of the page. Lines that are comments or no samples are left out, and so are time
// stamps. Source: https://prometheus.io/docs/instrumenting/exposition_formats/.
std::vector<MetricSample> ParseMetrics(std::string_view page);

// Of the samples of this name; with `label`, only of those that have it with this value.
double SumOf(const std::vector<MetricSample>& samples, std::string_view name,
             const std::string& label = "", std::string_view value = "");

// A sample's value without its fraction. A page may hold any number: a number that is too large or
// too small becomes the largest or smallest of the type, and NaN becomes 0.
template <std::integral Number>
Number ToWhole(double value) {
  using Limits = std::numeric_limits<Number>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  // As a double, max() is rounded up to a power of two. Every smaller double fits.
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<Number>(value);
}

}  // namespace optcache::cli
