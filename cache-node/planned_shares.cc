#include "cache-node/planned_shares.h"

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
                                   const plan::Order& order, const plan::Sizes& sizes) {
  const auto [stream, pass] = plan->key();
  std::erase_if(pieces_, [stream, pass](const auto& piece) {
    return piece.first.first == stream && piece.first.second + kPassesKept < pass;
  });
  std::vector<Piece>& pieces = pieces_[{stream, pass}];
  const Position begin = plan->begin();
  std::erase_if(pieces, [begin](const Piece& piece) { return piece.plan->begin() >= begin; });
  plan::NodeShare whole;
  for (Piece& piece : pieces) {
    if (piece.until > begin) {
      piece.until = begin;
      piece.share = plan::ShareOf(piece.self, *piece.plan, *order, sizes, begin);
    }
    whole += piece.share;
  }
  const plan::NodeShare share = plan::ShareOf(self, *plan, *order, sizes);
  const Position end = plan->end();
  pieces.push_back({.plan = std::move(plan), .self = self, .until = end, .share = share});
  whole += share;
  return whole;
}

}  // namespace optcache::node
