#pragma once

// Grafana's templates, as far as the dashboards of the chart use them: $name, ${name} and
// ${name:regex} in queries, {{label}} in legends. Pure.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace optcache::cli {

// By name: what was chosen, or nothing for all of them, and what "all" is then.
struct ChosenValues {
  std::vector<std::string> values;
  std::string all_value = ".*";
};
using TemplateValues = std::map<std::string, ChosenValues, std::less<>>;

// What Grafana knows by itself.
struct TemplateTimes {
  double range_seconds = 0;
  double step_seconds = 0;
  double scrape_seconds = 0;
};

// kInvalidArgument: a variable or a format that is not known.
//   $__range          the time shown
//   $__interval       the step
//   $__rate_interval  at least four scrapes, so that each rate has two
Result<std::string> FillQuery(std::string_view query, const TemplateValues& values,
                              const TemplateTimes& times);

using SeriesLabels = std::map<std::string, std::string, std::less<>>;

// A label that the series has not is an empty text. Without a legend: name{label="value"}.
std::string FillLegend(std::string_view legend, const SeriesLabels& labels);

}  // namespace optcache::cli
