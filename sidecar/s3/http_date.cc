#include "sidecar/s3/http_date.h"

#include <array>
#include <ctime>

#include <fmt/format.h>

namespace optcache::sidecar {
namespace {

constexpr auto kDays =
    std::to_array<std::string_view>({"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"});
constexpr auto kMonths = std::to_array<std::string_view>(
    {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"});
constexpr auto kForms =
    std::to_array({"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %T %Y"});

}  // namespace

std::string HttpDate(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm utc{};
  if (::gmtime_r(&time, &utc) == nullptr) return HttpDate(0);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                     kMonths.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::optional<std::int64_t> ParseHttpDate(std::string_view text) {
  const std::string date(text);
  for (const char* const form : kForms) {
    std::tm utc{};
    const char* const rest = ::strptime(date.c_str(), form, &utc);
    if (rest == date.c_str() + date.size()) return ::timegm(&utc);
  }
  return std::nullopt;
}

}  // namespace optcache::sidecar
