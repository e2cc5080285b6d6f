#include "sidecar/fetch/store_speed.h"

#include <algorithm>
#include <cmath>

namespace optcache::sidecar {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kRateMemorySeconds = 4;
constexpr double kRateKnownSeconds = 0.5;
constexpr double kTooSlow = 0.97;  // of what comes while nothing is held back
constexpr double kTrySeconds = 30;

// A measurement that agrees with the one before is trusted twice as long.
constexpr double kTrustMinSeconds = 1;
constexpr double kTrustMaxSeconds = 16;

// A read is late after more than the small reads and the large one beside it cost it.
constexpr Duration kLateAfter = std::chrono::milliseconds(250);
constexpr int kLateTimes = 4;  // what its bytes need, beyond that
constexpr double kLateReads = 8;
constexpr double kLateShareMax = 0.5;

constexpr double kLongestSeconds = 1e6;  // a store that has sent nearly nothing for minutes

}  // namespace

void StoreSpeed::Rate::Add(double more_bytes, double more_seconds) {
  const double kept = std::exp(-more_seconds / kRateMemorySeconds);
  bytes = bytes * kept + more_bytes;
  seconds = seconds * kept + more_seconds;
}

bool StoreSpeed::Rate::known() const {
  return seconds >= kRateKnownSeconds && bytes > 0;
}

void StoreSpeed::Note(MonotonicTime now, ByteCount arrived, Load load) {
  const double seconds = Seconds(now - noted_at_).count();
  const auto bytes = static_cast<double>(arrived - std::min(arrived, arrived_));
  if (load_ != Load::kLight) {
    (load_ == Load::kFull ? full_ : held_).Add(bytes, seconds);
    if (load_ == Load::kHeld) held_seconds_ += seconds;
    width_seconds_ += seconds;
    Judge();
  }
  noted_at_ = now;
  arrived_ = arrived;
  load_ = load;
}

StoreSpeed::Begun StoreSpeed::Begin(ByteCount bytes, MonotonicTime now) const {
  const std::optional<Duration> time = TimeFor(bytes);
  if (!time || width_ == places_) return {};
  return {.width = width_, .late_at = now + kLateAfter + kLateTimes * *time};
}

// One that began with another width shared the store with more, or fewer.
void StoreSpeed::NoteEnd(const Begun& begun, MonotonicTime now) {
  if (begun.width != width_) return;
  const bool is_late = now > begun.late_at;
  if (is_late && now - late_ < kLateAfter) return;
  if (is_late) late_ = now;
  late_share_ += ((is_late ? 1 : 0) - late_share_) / kLateReads;
  if (late_share_ > kLateShareMax) SetWidth(places_);
}

bool StoreSpeed::IsTooNarrow() const {
  return held_.seconds >= kRateKnownSeconds && full_.known() &&
         held_.per_second() < kTooSlow * std::max(full_.per_second(), before_);
}

void StoreSpeed::Judge() {
  const bool narrow = IsTooNarrow();
  if (measuring_) {
    if (!full_.known()) return;
    measuring_ = false;
    held_seconds_ = 0;
    trust_seconds_ = narrow ? kTrustMinSeconds
                            : std::clamp(2 * trust_seconds_, kTrustMinSeconds, kTrustMaxSeconds);
    held_ = {};
    if (narrow) SetWidth(std::min(2 * width_, places_));
  } else if (narrow || held_seconds_ > trust_seconds_) {
    measuring_ = true;
    before_ = full_.per_second();
    full_ = {};
  } else if (width_seconds_ > kTrySeconds && width_ > 1) {
    SetWidth(width_ / 2);
  }
}

void StoreSpeed::SetWidth(std::size_t width) {
  width_ = width;
  width_seconds_ = 0;
  late_share_ = 0;
  held_ = {};
}

double StoreSpeed::BytesPerSecond() const {
  if (!full_.known()) return 0;
  return std::max(full_.per_second(), held_.known() ? held_.per_second() : 0);
}

std::optional<Duration> StoreSpeed::TimeFor(ByteCount bytes) const {
  const double most = BytesPerSecond();
  if (most == 0) return std::nullopt;
  const double seconds = std::min(static_cast<double>(bytes) / most, kLongestSeconds);
  return std::chrono::duration_cast<Duration>(Seconds(seconds));
}

}  // namespace optcache::sidecar
