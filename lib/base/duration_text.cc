#include "base/duration_text.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace optcache {
namespace {

constexpr std::int64_t kMaxDurationMilliseconds = 100LL * 24 * 3600 * 1000;

// In milliseconds; 0: no unit.
std::int64_t DurationFactorOf(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s") return 1000;
  if (unit == "m") return 60'000;
  if (unit == "h") return 3'600'000;
  return 0;
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
  const Status invalid(Code::kInvalidArgument,
                       "'" + std::string(text) +
                           "' is no span of time: write a number with h, m, s or ms, for example "
                           "90s or 1h30m, at most 2400h");
  if (text == "0") return Duration(0);
  if (text.empty()) return std::unexpected(invalid);
  std::int64_t sum = 0;
  while (!text.empty()) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    const std::string_view unit = text.substr(0, text.find_first_of("0123456789"));
    text.remove_prefix(unit.size());
    const std::int64_t factor = DurationFactorOf(unit);
    const bool valid = error == std::errc() && number >= 0 && factor > 0 &&
                       number <= (kMaxDurationMilliseconds - sum) / factor;
    if (!valid) return std::unexpected(invalid);
    sum += number * factor;
  }
  return std::chrono::milliseconds(sum);
}

std::string FormatDuration(Duration duration) {
  struct Unit {
    std::int64_t milliseconds;
    const char* name;
  };
  constexpr std::array kUnits = {Unit{3'600'000, "h"}, Unit{60'000, "m"}, Unit{1000, "s"},
                                 Unit{1, "ms"}};
  std::int64_t rest = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  std::string text;
  for (const Unit& unit : kUnits) {
    if (const std::int64_t whole = rest / unit.milliseconds; whole > 0)
      text += std::to_string(whole) + unit.name;
    rest %= unit.milliseconds;
  }
  return text.empty() ? "0s" : text;
}

Result<Duration> ParseDurationWithin(std::string_view text, const DurationBounds& bounds) {
  const Result<Duration> duration = ParseDuration(text);
  if (!duration || *duration < bounds.least || *duration > bounds.most ||
      *duration % std::chrono::seconds(1) != Duration::zero()) {
    return Error(Code::kInvalidArgument, "'" + std::string(text) + "', allowed: a span of time " +
                                             std::string(bounds.allowed));
  }
  return *duration;
}

}  // namespace optcache
