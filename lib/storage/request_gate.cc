#include "storage/request_gate.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::storage {
namespace {

ConcurrencyLimit::End EndOf(const Status& status) {
  switch (status.code()) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      return ConcurrencyLimit::End::kOverloaded;
    case Code::kCancelled:
    case Code::kResourceExhausted:
      return ConcurrencyLimit::End::kUnknown;
    default:
      return ConcurrencyLimit::End::kAnswered;
  }
}

// A bucket that fills so slowly that it says "never" must not lead beyond the end of the clock.
constexpr Duration kLongestWait = std::chrono::hours(1);

// What is saved up: of a second, and one request at least.
double CapacityFor(double per_second) {
  return std::max(per_second, 1.0);
}

std::optional<TokenBucket> BucketFor(double per_second) {
  if (per_second <= 0) return std::nullopt;
  const double capacity = CapacityFor(per_second);
  return TokenBucket({.capacity = capacity, .per_second = per_second, .initial = capacity});
}

// Returns what is in force from now on.
double SetRate(std::optional<TokenBucket>& bucket, double wanted, double most, MonotonicTime now) {
  if (!bucket) return 0;
  const double rate = wanted > 0 ? std::min(wanted, most) : most;
  bucket->SetRate(CapacityFor(rate), rate, now);
  return rate;
}

}  // namespace

RequestGate::RequestGate(RequestGateOptions options)
    : options_(options),
      in_force_(options.rates),
      concurrency_(options.concurrency),
      requests_(BucketFor(options.rates.requests_per_second)),
      bytes_(BucketFor(options.rates.bytes_per_second)) {}

// `now` if only a running request may be in the way.
MonotonicTime RequestGate::NotBefore(MonotonicTime now) {
  Duration wait = closed_until_ > now ? closed_until_ - now : Duration::zero();
  if (requests_) wait = std::max(wait, requests_->Until(1, now));
  if (bytes_) wait = std::max(wait, bytes_->Until(0, now));  // no debts
  return now + std::min(wait, kLongestWait);
}

void RequestGate::SetRates(const StoreRates& rates, MonotonicTime now) {
  const StoreRates& most = options_.rates;
  in_force_ = {
      .requests_per_second =
          SetRate(requests_, rates.requests_per_second, most.requests_per_second, now),
      .bytes_per_second = SetRate(bytes_, rates.bytes_per_second, most.bytes_per_second, now)};
}

RequestGate::HeldBack RequestGate::HeldBackBy(MonotonicTime now) {
  if (!concurrency_.MayStart() || closed_until_ > now) return {};
  const StoreRates& most = options_.rates;
  return {.by_requests = in_force_.requests_per_second < most.requests_per_second &&
                         requests_->Until(1, now) > Duration::zero(),
          .by_bytes = in_force_.bytes_per_second < most.bytes_per_second &&
                      bytes_->Until(0, now) > Duration::zero()};
}

bool RequestGate::MayStart(MonotonicTime now) {
  return concurrency_.MayStart() && NotBefore(now) == now;
}

std::optional<MonotonicTime> RequestGate::OpensAt(MonotonicTime now) {
  const MonotonicTime at = NotBefore(now);
  if (!concurrency_.MayStart() || at == now) return std::nullopt;
  return at;
}

RequestGate::Ticket RequestGate::OnStart(ByteCount bytes, MonotonicTime now) {
  if (requests_) requests_->Take(1, now);
  if (bytes_) bytes_->Take(static_cast<double>(bytes), now);
  ++started_;
  started_bytes_ += bytes;
  return concurrency_.OnStart();
}

void RequestGate::OnEnd(Ticket ticket, const Status& status, Duration retry_after,
                        MonotonicTime now) {
  concurrency_.OnEnd(ticket, EndOf(status));
  if (status.ok() || retry_after <= Duration::zero()) return;
  closed_until_ = std::max(closed_until_, now + std::min(retry_after, options_.closed_max));
}

std::string RequestGate::Describe(MonotonicTime now) const {
  std::string text = fmt::format("{} of {} requests at a time", concurrency_.limit(),
                                 std::max(options_.concurrency.max, 1U));
  if (requests_) text += fmt::format(", {:g} a second", in_force_.requests_per_second);
  if (bytes_) {
    text += fmt::format(", {} a second",
                        FormatBytes(static_cast<ByteCount>(in_force_.bytes_per_second)));
  }
  if (now < closed_until_) {
    const double wait_s = ToSeconds(closed_until_ - now);
    text += fmt::format(", none for {:.1f} s, as the store asked", wait_s);
  }
  return text;
}

}  // namespace optcache::storage
