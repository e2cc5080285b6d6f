#include "cache-node/plan_book.h"

#include <algorithm>
#include <limits>

namespace optcache::node {
namespace {

// The part of a pass's forecast that lies before `position`, as if it were even.
PlanBook::Foretold Share(const PlanBook::Foretold& whole, Position position, Position length) {
  const auto part = [&](std::uint64_t number) {  // number * position may not fit
    return number / length * position + number % length * position / length;
  };
  return {.accesses = part(whole.accesses),
          .store_reads = part(whole.store_reads),
          .store_bytes = part(whole.store_bytes),
          .moved_bytes = part(whole.moved_bytes)};
}

}  // namespace

PlanBook::Foretold& PlanBook::Foretold::operator+=(const Foretold& other) {
  accesses += other.accesses;
  store_reads += other.store_reads;
  store_bytes += other.store_bytes;
  moved_bytes += other.moved_bytes;
  return *this;
}

void PlanBook::Add(DerivedPass pass) {
  const plan::PassPlan& plan = *pass.plan;
  const plan::PlanStats& stats = plan.stats();
  Foretold forecast = {.accesses = stats.accesses,
                       .store_reads = stats.store_reads,
                       .store_bytes = stats.store_bytes,
                       .moved_bytes = stats.moved_bytes};
  Foretold& known = forecasts_[plan.key().stream][plan.key().pass];
  // What an earlier version foretold holds for the reads before this one's cut.
  if (plan.begin() > 0 && known.accesses > 0) forecast += Share(known, plan.begin(), plan.end());
  known = forecast;
  if (stats.accesses > 0) {
    hit_ratio_ = 1.0 - static_cast<double>(stats.store_reads) / static_cast<double>(stats.accesses);
  }
  auto& versions = passes_[{plan.key().stream, plan.key().pass}];
  // What the new one covers is asked of the old ones no more.
  std::erase_if(versions,
                [&](const DerivedPass& old) { return old.plan->begin() >= plan.begin(); });
  versions.insert(versions.begin(), std::move(pass));
}

void PlanBook::OnPassBegun(StreamId stream, PassNumber pass) {
  PassNumber& begun = begun_[stream];
  begun = std::max(begun, pass);
  auto& forecasts = forecasts_[stream];
  // A version that is cut in a pass that ended long ago will not come.
  while (!forecasts.empty() && forecasts.begin()->first + 2 < begun) {
    past_ += forecasts.begin()->second;
    forecasts.erase(forecasts.begin());
  }
}

PlanBook::Foretold PlanBook::foretold() const {
  Foretold sum = past_;
  for (const auto& [stream, forecasts] : forecasts_) {
    const auto begun = begun_.find(stream);
    if (begun == begun_.end()) continue;
    for (const auto& [pass, forecast] : forecasts) {
      if (pass <= begun->second) sum += forecast;
    }
  }
  return sum;
}

void PlanBook::Forget(StreamId stream, PassNumber below) {
  passes_.erase(passes_.lower_bound({stream, 0}), passes_.lower_bound({stream, below}));
}

void PlanBook::ForgetStream(StreamId stream) {
  passes_.erase(passes_.lower_bound({stream, 0}),
                passes_.upper_bound({stream, std::numeric_limits<PassNumber>::max()}));
  const auto begun = begun_.find(stream);
  for (const auto& [pass, forecast] : forecasts_[stream]) {
    if (begun != begun_.end() && pass <= begun->second) past_ += forecast;
  }
  forecasts_.erase(stream);
  begun_.erase(stream);
}

std::optional<Verdict> PlanBook::Find(const ReadKey& key) const {
  const auto found = passes_.find({key.stream, key.pass});
  if (found == passes_.end()) return std::nullopt;
  for (const DerivedPass& pass : found->second) {
    if (key.position >= pass.stops_at) return Verdict{.beyond = true};
    if (!pass.plan->Covers(key.position)) continue;
    const plan::Decision decision = pass.plan->At(key.position);
    Verdict verdict{.here = decision.planned_here};
    if (decision.keep_at < pass.members->size()) {
      verdict.keep = true;
      verdict.keep_at = (*pass.members)[decision.keep_at];
    }
    return verdict;
  }
  return std::nullopt;
}

}  // namespace optcache::node
