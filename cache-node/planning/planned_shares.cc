#include "cache-node/planning/planned_shares.h"

#include <algorithm>

namespace optcache::node {
namespace {

// A version is never cut farther behind what has been planned, which is two passes ahead.
constexpr PassNumber kPassesKept = 4;

}  // namespace

void PlannedShares::Begin(const PlanTask& task) {
  std::erase_if(pieces_, [&task](const auto& pass) {
    const auto& [stream, number] = pass.first;
    const auto now = std::ranges::find(task.streams, stream, &coordination::StreamState::id);
    return now == task.streams.end() || number > now->cut.pass ||
           number + kPassesKept < now->cut.pass;
  });
}

plan::NodeShare PlannedShares::Add(std::shared_ptr<const plan::PassPlan> plan, NodeIndex self,
                                   const plan::Order& order, const plan::Sizes& sizes,
                                   const StopCheck& stop) {
  const auto [stream, pass] = plan->key();
  std::erase_if(pieces_, [stream, pass](const auto& piece) {
    return piece.first.first == stream && piece.first.second + kPassesKept < pass;
  });
  std::vector<Piece>& pieces = pieces_[{stream, pass}];
  const Position begin = plan->begin();
  const Position end = plan->end();
  std::vector<Piece> now;
  for (const Piece& piece : pieces) {
    if (piece.plan->begin() >= begin) continue;
    Piece& kept = now.emplace_back(piece);
    if (kept.until <= begin) continue;
    kept.until = begin;
    kept.share = plan::ShareOf(kept.self, *kept.plan, *order, sizes, begin, stop);
  }
  const plan::NodeShare share = plan::ShareOf(self, *plan, *order, sizes, end, stop);
  now.push_back({.plan = std::move(plan), .self = self, .until = end, .share = share});
  if (stop.Now()) return {};
  pieces = std::move(now);
  plan::NodeShare whole;
  for (const Piece& piece : pieces)
    whole += piece.share;
  return whole;
}

}  // namespace optcache::node
