#pragma once

// A page of metrics in Prometheus's text format, as our programs serve it.

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

}  // namespace optcache::cli
