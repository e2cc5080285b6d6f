#include "operator/reconcile/dataset/index_period.h"

#include <cmath>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/whole_number.h"
#include "dataset/digest.h"

namespace optcache::reconcile {
namespace {

// The same in every process that asks, and another one for each Dataset.
std::int64_t OffsetOf(std::string_view uid, std::int64_t interval_seconds) {
  const dataset::Digest digest = dataset::Sha256Of(AsBytes(uid));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(number); ++i)
    number = number << 8U | static_cast<std::uint8_t>(digest[i]);
  return static_cast<std::int64_t>(number % static_cast<std::uint64_t>(interval_seconds));
}

}  // namespace

std::int64_t PeriodAt(std::string_view uid, std::int64_t interval_seconds, double now) {
  if (interval_seconds <= 0) return 0;
  const std::int64_t offset = OffsetOf(uid, interval_seconds);
  const auto since = static_cast<std::int64_t>(std::floor(now)) - offset;
  return since - since % interval_seconds + offset;
}

std::string ToText(const IndexMark& mark) {
  return mark.period == 0 ? mark.hash : fmt::format("{}-{}", mark.hash, mark.period);
}

IndexMark ParseIndexMark(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return {.hash = std::string(text)};
  const auto period = ParseWholeNumber<std::int64_t>(text.substr(dash + 1));
  if (!period) return {};
  return {.hash = std::string(text.substr(0, dash)), .period = *period};
}

bool IsDue(const IndexMark& last, const IndexMark& wanted, std::int64_t interval_seconds) {
  if (wanted.period == 0) return false;
  // A period that is to come was written by a clock that ran ahead.
  return last.period < wanted.period || last.period > wanted.period + interval_seconds;
}

}  // namespace optcache::reconcile
