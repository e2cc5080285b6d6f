#include "cache-node/planning/plan_book.h"

#include <algorithm>
#include <limits>

#include "coordination/state.h"

namespace optcache::node {
namespace {

// Of passes that nobody reads any more: those that are reported, and one more.
constexpr PassNumber kSharesKept = coordination::kPassesReported + 1;

}  // namespace

void PlanBook::Add(DerivedPass pass) {
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

plan::NodeShare PlanBook::ShareOf(StreamId stream, PassNumber pass) const {
  const auto found = shares_.find({stream, pass});
  return found == shares_.end() ? plan::NodeShare() : found->second;
}

void PlanBook::Forget(StreamId stream, PassNumber below) {
  passes_.erase(passes_.lower_bound({stream, 0}), passes_.lower_bound({stream, below}));
  if (below <= kSharesKept) return;
  shares_.erase(shares_.lower_bound({stream, 0}),
                shares_.lower_bound({stream, below - kSharesKept}));
}

void PlanBook::ForgetStream(StreamId stream) {
  const auto forget = [stream](auto& passes) {
    passes.erase(passes.lower_bound({stream, 0}),
                 passes.upper_bound({stream, std::numeric_limits<PassNumber>::max()}));
  };
  forget(passes_);
  forget(shares_);
}

void PlanBook::ForgetAll() {
  passes_.clear();
  shares_.clear();
  hit_ratio_ = 0;
}

std::optional<Verdict> PlanBook::Find(const ReadKey& key) const {
  const auto found = passes_.find({key.stream, key.pass});
  if (found == passes_.end()) return std::nullopt;
  for (const DerivedPass& pass : found->second) {
    if (key.position >= pass.stops_at) return Verdict{.beyond = true};
    if (!pass.plan->Covers(key.position)) continue;
    const plan::Decision decision = pass.plan->At(key.position);
    Verdict verdict{.here = decision.planned_here};
    if (decision.holder < pass.members->size()) verdict.holder = (*pass.members)[decision.holder];
    if (decision.keep_at < pass.members->size()) {
      verdict.keep = true;
      verdict.keep_at = (*pass.members)[decision.keep_at];
      verdict.moves =
          decision.keep_at != decision.holder &&
          (decision.planned_here || decision.keep_at != pass.plan->ReaderAt(key.position));
    }
    return verdict;
  }
  return std::nullopt;
}

bool PlanBook::Decides(ReadKey next) const {
  if (Find(next)) return true;
  if (next.position == 0) return false;
  --next.position;  // the pass may have ended
  return Find(next).has_value();
}

}  // namespace optcache::node
