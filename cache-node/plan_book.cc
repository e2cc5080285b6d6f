#include "cache-node/plan_book.h"

#include <limits>

namespace optcache::node {

void PlanBook::Add(DerivedPass pass) {
  const plan::PassKey& key = pass.plan->key();
  const plan::PlanStats& stats = pass.plan->stats();
  foretold_.accesses += stats.accesses;
  foretold_.store_reads += stats.store_reads;
  foretold_.store_bytes += stats.store_bytes;
  foretold_.moved_bytes += stats.moved_bytes;
  foretold_.digest = pass.plan->digest();
  if (stats.accesses > 0) {
    foretold_.hit_ratio =
        1.0 - static_cast<double>(stats.store_reads) / static_cast<double>(stats.accesses);
  }
  auto& versions = passes_[{key.stream, key.pass}];
  versions.insert(versions.begin(), std::move(pass));
}

void PlanBook::Forget(StreamId stream, PassNumber below) {
  passes_.erase(passes_.lower_bound({stream, 0}), passes_.lower_bound({stream, below}));
}

void PlanBook::ForgetStream(StreamId stream) {
  passes_.erase(passes_.lower_bound({stream, 0}),
                passes_.upper_bound({stream, std::numeric_limits<PassNumber>::max()}));
}

std::optional<Verdict> PlanBook::Find(const ReadKey& key) const {
  const auto found = passes_.find({key.stream, key.pass});
  if (found == passes_.end()) return std::nullopt;
  for (const DerivedPass& pass : found->second) {
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

bool PlanBook::CoversPass(StreamId stream, PassNumber pass) const {
  return passes_.contains({stream, pass});
}

std::vector<PlanBook::PassForecast> PlanBook::Forecasts() const {
  std::vector<PassForecast> forecasts;
  for (const auto& [key, versions] : passes_) {
    const plan::PassPlan& newest = *versions.front().plan;
    forecasts.push_back({.stream = key.first,
                         .pass = key.second,
                         .stats = newest.stats(),
                         .digest = newest.digest()});
  }
  return forecasts;
}

}  // namespace optcache::node
