#pragma once

// Prometheus' HTTP API, as far as panels need it: what to ask, and what the answer says. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/dashboard/template_text.h"

namespace optcache::cli {

// Seconds since 1970.
struct TimeRange {
  double from = 0;
  double to = 0;
  double step = 0;
};

// Prometheus refuses more points of a series.
inline constexpr double kPointsMax = 11'000;

// kInvalidArgument: it ends before it begins, or has more than kPointsMax steps.
Status CheckTimeRange(const TimeRange& range);

// "90s", "15m", "1h", "2d" in seconds. kInvalidArgument.
Result<double> ParseSpan(std::string_view text);
// "2026-01-05T10:00:00Z", or seconds since 1970. kInvalidArgument.
Result<double> ParseMoment(const std::string& text);

// Path and body of a POST with the query; an instant one asks for the range's end.
struct PrometheusQuestion {
  std::string path;
  std::string form;
};
PrometheusQuestion MakeQuestion(const std::string& query, const TimeRange& range, bool instant);

struct PrometheusSeries {
  SeriesLabels labels;
  std::vector<std::pair<double, double>> points;  // time and value; what is no number is left out
};

// Of an answer with status 200, or Prometheus' own words why not (kInvalidArgument: the query).
// kUnavailable: it is not Prometheus that answers.
Result<std::vector<PrometheusSeries>> ParseAnswer(int status, std::string_view body);

}  // namespace optcache::cli
