#include "cli/terminal/value_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/decimal.h"

namespace optcache::cli {
namespace {

struct Prefix {
  double factor;
  std::string_view text;
};

// As many digits as tell values apart that differ by a hundredth.
std::string Digits(double value) {
  const double size = std::abs(value);
  std::string text = size >= 100   ? fmt::format("{:.0f}", value)
                     : size >= 10  ? fmt::format("{:.1f}", value)
                     : size >= 0.1 ? fmt::format("{:.2f}", value)
                                   : fmt::format("{:.2g}", value);
  if (text.contains('.') && !text.contains('e')) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

// By the largest factor that is not above the value; the first stands for what is smaller, too.
template <std::size_t kCount>
std::string Scaled(double value, const std::array<Prefix, kCount>& prefixes) {
  const Prefix* chosen = prefixes.data();
  for (const Prefix& prefix : prefixes) {
    if (std::abs(value) >= prefix.factor * 0.9995) chosen = &prefix;
  }
  return Digits(value / chosen->factor) + std::string(chosen->text);
}

constexpr double kKi = 1024;
constexpr std::array<Prefix, 6> kBytes{{{1, " B"},
                                        {kKi, " KiB"},
                                        {kKi * kKi, " MiB"},
                                        {kKi * kKi * kKi, " GiB"},
                                        {kKi * kKi * kKi * kKi, " TiB"},
                                        {kKi * kKi * kKi * kKi * kKi, " PiB"}}};
constexpr std::array<Prefix, 5> kBytesPerSecond{
    {{1, " B/s"}, {1e3, " kB/s"}, {1e6, " MB/s"}, {1e9, " GB/s"}, {1e12, " TB/s"}}};
constexpr std::array<Prefix, 3> kOperations{{{1, " /s"}, {1e3, "k /s"}, {1e6, "M /s"}}};
constexpr std::array<Prefix, 5> kShort{{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}};
constexpr std::array<Prefix, 6> kSeconds{
    {{1e-6, " µs"}, {1e-3, " ms"}, {1, " s"}, {60, " min"}, {3600, " h"}, {86'400, " d"}}};

double RoundStep(double least, std::string_view unit) {
  if (unit == "bytes" && least >= kKi / 2) {
    double step = 1;
    while (step < least)
      step *= 2;
    return step;
  }
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 2.5, 5.0}) {
    if (digit * power >= least * 0.9999) return digit * power;
  }
  return 10 * power;
}

}  // namespace

std::string FormatValue(double value, std::string_view unit) {
  if (unit == "percentunit") return Digits(value * 100) + " %";
  if (unit == "bytes") return Scaled(value, kBytes);
  if (unit == "Bps") return Scaled(value, kBytesPerSecond);
  if (unit == "ops") return Scaled(value, kOperations);
  if (unit == "s") return value == 0 ? "0 s" : Scaled(value, kSeconds);
  if (unit == "short") return Scaled(value, kShort);
  return Digits(value);
}

std::string PercentText(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

std::string PercentText(const std::string& share) {
  if (share.empty()) return "-";
  const std::optional<double> number = ParseDecimal(share);
  return number ? PercentText(*number) : share;
}

std::vector<double> AxisTicks(double low, double high, int count, std::string_view unit) {
  const double step = RoundStep((high - low) / count, unit);
  std::vector<double> ticks;
  // Counted, so that no error adds up.
  const auto first = static_cast<std::int64_t>(std::floor(low / step + 1e-9));
  for (std::int64_t i = first; ticks.size() < 100; ++i) {
    ticks.push_back(static_cast<double>(i) * step);
    if (ticks.back() >= high - step * 1e-9) break;
  }
  return ticks;
}

std::vector<TimeTick> TimeTicks(double from, double to, int count) {
  constexpr std::array<double, 20> kSteps{1,     2,     5,     10,     15,      30,     60,
                                          120,   300,   600,   900,    1800,    3600,   7200,
                                          10800, 21600, 43200, 86'400, 172'800, 604'800};
  double step = kSteps.back();
  for (auto it = kSteps.rbegin(); it != kSteps.rend(); ++it) {
    if ((to - from) / *it <= count) step = *it;
  }
  while ((to - from) / step > count)
    step *= 2;
  std::vector<TimeTick> ticks;
  for (double at = std::ceil(from / step) * step; at <= to; at += step) {
    const std::string all = FormatMoment(at);
    ticks.push_back({.at = at,
                     .text = step >= 86'400 ? all.substr(5, 5)
                             : step >= 60   ? all.substr(11, 5)
                                            : all.substr(11, 8)});
  }
  return ticks;
}

std::string FormatMoment(double unix_seconds) {
  const auto seconds = static_cast<std::int64_t>(std::floor(unix_seconds));
  const std::chrono::sys_seconds moment{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(moment - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

}  // namespace optcache::cli
