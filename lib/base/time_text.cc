#include "base/time_text.h"

#include <chrono>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/whole_number.h"

namespace optcache {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

std::string ToWholeSeconds(sys_seconds time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

// Reads what the format asks for, piece by piece; any miss makes all that follows fail.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  int Digits(std::size_t count) {
    const auto value = ParseWholeNumber<unsigned>(rest_.substr(0, count));
    if (!value || rest_.size() < count) return Fail();
    rest_.remove_prefix(count);
    return static_cast<int>(*value);
  }
  bool Skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Expect(char c) {
    if (!Skip(c)) Fail();
  }
  // ".123456", of any length; 0 if there is none.
  double Fraction() {
    double value = 0;
    if (!Skip('.')) return value;
    double unit = 0.1;
    const std::size_t before = rest_.size();
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; unit /= 10) {
      value += unit * (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    if (rest_.size() == before) Fail();
    return value;
  }
  // "Z" or "+02:00".
  seconds Offset() {
    if (Skip('Z')) return seconds(0);
    const bool west = Skip('-');
    if (!west) Expect('+');
    const int hours = Digits(2);
    Expect(':');
    const int minutes = Digits(2);
    const seconds offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
    return west ? -offset : offset;
  }
  bool Succeeded() const { return ok_ && rest_.empty(); }

 private:
  int Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string FormatTime(double unix_seconds) {
  return ToWholeSeconds(sys_seconds(seconds(std::llround(std::floor(unix_seconds))))) + "Z";
}

std::string FormatMicroTime(double unix_seconds) {
  constexpr std::int64_t kMicros = 1'000'000;
  const std::int64_t micros = std::llround(unix_seconds * static_cast<double>(kMicros));
  std::int64_t whole = micros / kMicros;
  std::int64_t part = micros % kMicros;
  if (part < 0) {
    part += kMicros;
    --whole;
  }
  return fmt::format("{}.{:06}Z", ToWholeSeconds(sys_seconds(seconds(whole))), part);
}

std::optional<double> ParseTime(std::string_view text) {
  Reader reader(text);
  const int year = reader.Digits(4);
  reader.Expect('-');
  const int month = reader.Digits(2);
  reader.Expect('-');
  const int day = reader.Digits(2);
  reader.Expect('T');
  const int hour = reader.Digits(2);
  reader.Expect(':');
  const int minute = reader.Digits(2);
  reader.Expect(':');
  const int second = reader.Digits(2);
  const double fraction = reader.Fraction();
  const seconds offset = reader.Offset();
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  const bool in_range = date.ok() && hour < 24 && minute < 60 && second <= 60;
  if (!reader.Succeeded() || !in_range) return std::nullopt;
  const sys_seconds time = sys_days(date) + std::chrono::hours(hour) +
                           std::chrono::minutes(minute) + seconds(second) - offset;
  return static_cast<double>(time.time_since_epoch().count()) + fraction;
}

}  // namespace optcache
