// Writes questions for Prometheus' HTTP API and reads its answers.
//
// Queries are sent as a form in a POST, because they can be longer than a URL may be. Values come
// as text; those that are no finite number are left out, as a picture cannot show them. An answer
// that is not Prometheus' own JSON is told apart from one in which Prometheus refuses the query.

#include "cli/dashboard/prometheus.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/decimal.h"

namespace optcache::cli {
namespace {

using Json = nlohmann::json;

constexpr double kSpanMax = 10.0 * 366 * 86'400;
constexpr double kMomentMax = 1e11;
constexpr std::size_t kShownBytes = 300;

std::string FormEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

// [time, "value"]; values are texts, as JSON has no infinity.
std::optional<std::pair<double, double>> ReadPoint(const Json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_string())
    return std::nullopt;
  const auto& text = pair[1].get_ref<const std::string&>();
  const double value = std::strtod(text.c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return std::pair{pair[0].get<double>(), value};
}

SeriesLabels ReadLabels(const Json& metric) {
  SeriesLabels labels;
  for (const auto& [name, value] : metric.items()) {
    if (value.is_string()) labels[name] = value;
  }
  return labels;
}

PrometheusSeries ReadSeries(const Json& each) {
  PrometheusSeries series{.labels = ReadLabels(each.value("metric", Json::object())), .points = {}};
  if (const auto found = each.find("value"); found != each.end()) {
    if (const auto point = ReadPoint(*found)) series.points.push_back(*point);
  }
  if (const auto found = each.find("values"); found != each.end()) {
    for (const Json& pair : *found) {
      if (const auto point = ReadPoint(pair)) series.points.push_back(*point);
    }
  }
  return series;
}

std::unexpected<Status> NotPrometheus(int status, std::string_view body) {
  return Error(Code::kUnavailable,
               fmt::format("status {} and no answer of Prometheus: is this its URL? It begins: {}",
                           status, body.substr(0, kShownBytes)));
}

}  // namespace

Status CheckTimeRange(const TimeRange& range) {
  if (range.to <= range.from)
    return {Code::kInvalidArgument, "the time shown ends before it begins: give --to after --from"};
  if (!(range.step > 0)) return {Code::kInvalidArgument, "--step is not above 0"};
  if (const double points = (range.to - range.from) / range.step; points > kPointsMax) {
    return {Code::kInvalidArgument,
            fmt::format("{:.0f} points of each series are more than the {:.0f} that Prometheus "
                        "gives; take a --step of at least {:.0f}s",
                        points, kPointsMax, std::ceil((range.to - range.from) / kPointsMax))};
  }
  return OkStatus();
}

Result<double> ParseSpan(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const double seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 86'400;
  const bool known = unit == "s" || unit == "m" || unit == "h" || unit == "d";
  if (error != std::errc{} || !known || !(number > 0) || number * seconds > kSpanMax) {
    return Error(Code::kInvalidArgument,
                 fmt::format("'{}' is no span of time: write 90s, 15m, 1h or 2d", text));
  }
  return number * seconds;
}

Result<double> ParseMoment(const std::string& text) {
  const std::optional<double> number = ParseDecimal(text);
  if (number && *number >= 0 && *number < kMomentMax) return *number;
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  int used = 0;
  // NOLINTNEXTLINE(cert-err34-c): what is too large is refused below
  std::sscanf(text.c_str(), "%4d-%2u-%2uT%2u:%2u:%2uZ%n", &year, &month, &day, &hour, &minute,
              &second, &used);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (used == 0 || static_cast<std::size_t>(used) != text.size() || year < 1970 || !date.ok() ||
      hour > 23 || minute > 59 || second > 59) {
    return Error(Code::kInvalidArgument,
                 fmt::format("'{}' is no moment: write 2026-01-05T10:00:00Z, in UTC, or seconds "
                             "since 1970",
                             text));
  }
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86'400 + hour * 3600 + minute * 60 + second;
}

PrometheusQuestion MakeQuestion(const std::string& query, const TimeRange& range, bool instant) {
  const std::string form = "query=" + FormEncoded(query);
  if (instant)
    return {.path = "/api/v1/query", .form = fmt::format("{}&time={:.3f}", form, range.to)};
  return {.path = "/api/v1/query_range",
          .form = fmt::format("{}&start={:.3f}&end={:.3f}&step={:.3f}", form, range.from, range.to,
                              range.step)};
}

Result<std::vector<PrometheusSeries>> ParseAnswer(int status, std::string_view body) {
  const Json answer = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("status")) return NotPrometheus(status, body);
  if (answer["status"] != "success") {
    const Json& why = answer.value("error", Json(""));
    return Error(Code::kInvalidArgument,
                 why.is_string() && !why.empty() ? why.get<std::string>() : "it does not say why");
  }
  const Json::json_pointer result("/data/result");
  if (!answer.contains(result) || !answer.at(result).is_array()) return NotPrometheus(status, body);
  std::vector<PrometheusSeries> all;
  for (const Json& each : answer.at(result)) {
    if (!each.is_object()) {
      return Error(Code::kInvalidArgument,
                   "the query gives one number, not series: write vector(...) around it");
    }
    all.push_back(ReadSeries(each));
  }
  return all;
}

}  // namespace optcache::cli
