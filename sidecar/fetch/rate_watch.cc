#include "sidecar/fetch/rate_watch.h"

#include <algorithm>
#include <cmath>

namespace optcache::sidecar {
namespace {

constexpr double kMilli = 1000;
constexpr double kDown = 0.25;  // of the way to a lower rate, at each look

std::uint64_t Whole(double rate) {
  return static_cast<std::uint64_t>(std::ceil(rate));
}

// 0: no limit is divided.
double AtLeastFirst(double share, double most) {
  return share > 0 ? std::max(share, most * RateWatch::kFirstShare) : 0;
}

}  // namespace

void RateWatch::Start() {
  Look();
  alarms_.After(kLookEvery, [this] { Start(); });
}

void RateWatch::Begin(const StoreUse& use, MonotonicTime now) {
  datasets_[use.dataset] = {.since = now,
                            .measured_at = now,
                            .requests = {.used = use.requests, .held = use.held_by_requests},
                            .bytes = {.used = use.bytes, .held = use.held_by_bytes}};
  store_.SetRates(use.dataset, {.requests = use.most.requests * kFirstShare,
                                .bytes = use.most.bytes * kFirstShare});
}

void RateWatch::Measure(std::uint64_t used, std::uint64_t held, double seconds, Rate& rate) {
  const double now = static_cast<double>(used - rate.used) / seconds;
  rate.a_second = std::max(now, rate.a_second + kDown * (now - rate.a_second));
  rate.is_held_back = held != rate.held;
  rate.used = used;
  rate.held = held;
}

void RateWatch::Look() {
  const MonotonicTime now = alarms_.Now();
  for (const StoreUse& use : store_.Uses()) {
    if (use.most == StoreRate{}) continue;
    if (!datasets_.contains(use.dataset)) Begin(use, now);
    Watched& watched = datasets_[use.dataset];
    if (now - watched.measured_at >= kLookEvery) {
      const double seconds = ToSeconds(now - watched.measured_at);
      Measure(use.requests, use.held_by_requests, seconds, watched.requests);
      Measure(use.bytes, use.held_by_bytes, seconds, watched.bytes);
      watched.measured_at = now;
    }
    if (watched.waits && now - watched.since >= kFirstWordWithin) {
      watched.waits = false;
      store_.SetRates(use.dataset, {});
    }
    if (watched.heard && now - *watched.heard >= kSilentFor) {
      watched.heard.reset();
      store_.SetRates(use.dataset,
                      {.requests = AtLeastFirst(watched.share.requests, use.most.requests),
                       .bytes = AtLeastFirst(watched.share.bytes, use.most.bytes)});
    }
    Tell(use.dataset, watched);
  }
}

void RateWatch::Tell(wire::DatasetKey dataset, const Watched& watched) {
  if (!node_.connected()) return;
  const Rate& requests = watched.requests;
  const Rate& bytes = watched.bytes;
  node_.Send(0, wire::StoreDemand{.dataset = dataset,
                                  .requests_milli = Whole(requests.a_second * kHeadroom * kMilli),
                                  .bytes = Whole(bytes.a_second * kHeadroom),
                                  .requests_held_back = requests.is_held_back,
                                  .bytes_held_back = bytes.is_held_back});
}

void RateWatch::OnShare(const wire::StoreShare& share) {
  const auto found = datasets_.find(share.dataset);
  if (found == datasets_.end()) return;
  Watched& watched = found->second;
  watched.waits = false;
  watched.heard = alarms_.Now();
  watched.share = {.requests = static_cast<double>(share.requests_milli) / kMilli,
                   .bytes = static_cast<double>(share.bytes)};
  store_.SetRates(share.dataset, watched.share);
}

}  // namespace optcache::sidecar
