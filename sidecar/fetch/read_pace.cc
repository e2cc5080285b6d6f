#include "sidecar/fetch/read_pace.h"

#include <algorithm>
#include <cmath>

namespace optcache::sidecar {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kPaceMemorySeconds = 4;
constexpr double kPauseSeconds = 1;  // longer waits between two batches count as this much
constexpr double kPaceKnownSeconds = 1;
constexpr double kUnknownPerSecond = 1e6;
constexpr double kNotSoonSeconds = 1e6;
constexpr Duration kGoesOnAfter = std::chrono::seconds(1);

}  // namespace

void ReadPace::OnAsked(Place front, MonotonicTime now) {
  if (asked_at_ != MonotonicTime{} && now > asked_at_) {
    const double waited = std::min(Seconds(now - asked_at_).count(), kPauseSeconds);
    const double kept = std::exp(-waited / kPaceMemorySeconds);
    samples_ *= kept;
    seconds_ = seconds_ * kept + waited;
  }
  asked_at_ = now;
  samples_ += 1;
  const bool is_near = front <= front_ + reorder_ && front_ <= front + reorder_;
  if (is_near) {
    front_ = std::max(front_, front);
  } else if (!near_at_ || now - *near_at_ >= kGoesOnAfter) {
    front_ = front;
  } else {
    return;
  }
  near_at_ = now;
}

double ReadPace::SamplesPerSecond() const {
  return seconds_ < kPaceKnownSeconds ? kUnknownPerSecond : samples_ / seconds_;
}

MonotonicTime ReadPace::DueAt(Place place, MonotonicTime now) const {
  const double ahead = static_cast<double>(place) - static_cast<double>(front_);
  const double in = std::clamp(ahead / SamplesPerSecond(), -kNotSoonSeconds, kNotSoonSeconds);
  const double since = asked_at_ == MonotonicTime{}
                           ? -kNotSoonSeconds
                           : std::min(Seconds(now - asked_at_).count(), kPauseSeconds);
  return now + std::chrono::duration_cast<Duration>(Seconds(in - since));
}

}  // namespace optcache::sidecar
