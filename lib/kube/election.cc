#include "kube/election.h"

#include <algorithm>

#include "base/time_text.h"

namespace optcache::kube {
namespace {

// Followers ask after one to 2.2 periods, as client-go's do.
constexpr double kFollowerJitter = 1.2;

// Clocks that differ by less are only corrected a little.
constexpr Duration kSlept = std::chrono::seconds(1);

}  // namespace

Duration Elapsed(const Moment& from, const Moment& to) {
  const Duration elapsed = to.at - from.at;
  const auto by_wall = FromSeconds(to.unix_seconds - from.unix_seconds);
  return by_wall > elapsed + kSlept ? by_wall : elapsed;
}

Election::Election(ElectionOptions options, std::uint64_t seed)
    : options_(std::move(options)), random_(seed) {}

ElectionStep Election::Next(const Moment& now) {
  // A leader knows the version that it wrote: it renews without reading.
  if (leading_) return Write(now, /*create=*/false);
  return ReadLease{};
}

ElectionStep Election::OnRead(const std::optional<LeaseRecord>& record, const Moment& now) {
  if (record != seen_) {
    seen_ = record;
    seen_at_ = now.at;
  }
  if (leading_ && (!record || record->holder != options_.identity)) {
    // Taken from us: no time is left, whatever the clock says.
    renewed_at_.at = now.at - options_.renew_deadline;
    return Retry();
  }
  if (!record) return Write(now, /*create=*/true);
  if (!leading_ && HeldByAnother(now)) return Retry();
  return Write(now, /*create=*/false);
}

ElectionStep Election::OnWritten(const Moment& now) {
  seen_ = sent_;
  seen_at_ = now.at;
  // The answer to a renewal of a leadership that has ended meanwhile begins no other of its term.
  if (!leading_ && sent_.transitions <= term_) return Retry();
  // An answer that comes too late (this process was frozen) renews nothing.
  if (Lost(now) || Elapsed(sent_at_, now) >= options_.renew_deadline) return Retry();
  leading_ = true;
  renewed_at_ = sent_at_;
  term_ = sent_.transitions;
  return Retry();
}

ElectionStep Election::OnWriteFailed(WriteFailure failure) {
  if (failure == WriteFailure::kConflict && leading_) return ReadLease{};
  return Retry();
}

std::optional<Duration> Election::LeadsFor(const Moment& now) const {
  if (!leading_) return std::nullopt;
  const Duration elapsed = Elapsed(renewed_at_, now);
  if (elapsed >= options_.renew_deadline) return std::nullopt;
  return options_.renew_deadline - elapsed;
}

Duration Election::LostSince(const Moment& now) const {
  return Elapsed(renewed_at_, now) - options_.renew_deadline;
}

std::string Election::Holder(const Moment& now) const {
  if (LeadsFor(now)) return options_.identity;
  return seen_ && HeldByAnother(now) ? seen_->holder : "";
}

bool Election::HeldByAnother(const Moment& now) const {
  if (seen_->holder.empty() || seen_->holder == options_.identity) return false;
  return now.at - seen_at_ < std::chrono::seconds(seen_->duration_seconds);
}

ElectionStep Election::Write(const Moment& now, bool create) {
  const std::string time = FormatMicroTime(now.unix_seconds);
  sent_at_ = now;
  sent_ = {.holder = options_.identity,
           .duration_seconds =
               std::chrono::duration_cast<std::chrono::seconds>(options_.lease_duration).count(),
           .acquire_time = leading_ ? seen_->acquire_time : time,
           .renew_time = time,
           .transitions = seen_ ? seen_->transitions : 0};
  // Each leadership has a term of its own, also if the process before us in this pod had our name.
  if (!leading_) sent_.transitions = std::max(sent_.transitions, term_) + 1;
  return WriteLease{.record = sent_, .create = create};
}

ElectionStep Election::Retry() {
  if (leading_) return WaitForLease{options_.retry_period};
  return WaitForLease{std::chrono::duration_cast<Duration>(options_.retry_period *
                                                           (1 + kFollowerJitter * random_.Unit()))};
}

}  // namespace optcache::kube
