#include "cache-node/planning/plan_index.h"

#include <algorithm>
#include <limits>

#include "coordination/state.h"

namespace optcache::node {
namespace {

// Of passes that nobody reads any more: those that are reported, and one more.
constexpr PassNumber kSharesKept = coordination::kPassesReported + 1;

}  // namespace

void PlanIndex::Add(DerivedPass pass) {
  const plan::PassPlan& plan = *pass.plan;
  const plan::PlanStats& stats = plan.stats();
  const auto& [stream, number] = plan.key();
  shares_[{stream, number}] = pass.share;
  if (stats.accesses > 0) {
    hit_ratio_ = 1.0 - static_cast<double>(stats.store_reads) / static_cast<double>(stats.accesses);
  }
  auto& versions = passes_[{stream, number}];
  // What the new one covers is asked of the old ones no more.
  std::erase_if(versions,
                [&](const DerivedPass& old) { return old.plan->begin() >= plan.begin(); });
  versions.insert(versions.begin(), std::move(pass));
}

plan::NodeShare PlanIndex::ShareOf(StreamId stream, PassNumber pass) const {
  const auto found = shares_.find({stream, pass});
  return found == shares_.end() ? plan::NodeShare() : found->second;
}

void PlanIndex::Forget(StreamId stream, PassNumber below) {
  passes_.erase(passes_.lower_bound({stream, 0}), passes_.lower_bound({stream, below}));
  if (below <= kSharesKept) return;
  shares_.erase(shares_.lower_bound({stream, 0}),
                shares_.lower_bound({stream, below - kSharesKept}));
}

void PlanIndex::ForgetStream(StreamId stream) {
  const auto forget = [stream](auto& passes) {
    passes.erase(passes.lower_bound({stream, 0}),
                 passes.upper_bound({stream, std::numeric_limits<PassNumber>::max()}));
  };
  forget(passes_);
  forget(shares_);
}

void PlanIndex::ForgetAll() {
  passes_.clear();
  shares_.clear();
  hit_ratio_ = 0;
}

std::optional<PlanDecision> PlanIndex::Find(const ReadKey& key) const {
  const auto found = passes_.find({key.stream, key.pass});
  if (found == passes_.end()) return std::nullopt;
  for (const DerivedPass& pass : found->second) {
    if (key.position >= pass.stops_at) return PlanDecision{.beyond = true};
    if (!pass.plan->Covers(key.position)) continue;
    const plan::Decision planned = pass.plan->At(key.position);
    PlanDecision decision{.here = planned.planned_here};
    if (planned.holder < pass.members->size()) decision.holder = (*pass.members)[planned.holder];
    if (planned.keep_at < pass.members->size()) {
      decision.keep = true;
      decision.keep_at = (*pass.members)[planned.keep_at];
      decision.moves =
          planned.keep_at != planned.holder &&
          (planned.planned_here || planned.keep_at != pass.plan->ReaderAt(key.position));
    }
    return decision;
  }
  return std::nullopt;
}

bool PlanIndex::Decides(ReadKey next) const {
  if (Find(next)) return true;
  if (next.position == 0) return false;
  --next.position;  // the pass may have ended
  return Find(next).has_value();
}

}  // namespace optcache::node
