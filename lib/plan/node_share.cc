#include "plan/node_share.h"

#include <algorithm>
#include <cstddef>

namespace optcache::plan {

NodeShare& NodeShare::operator+=(const NodeShare& other) {
  reads += other.reads;
  store_reads += other.store_reads;
  read_bytes += other.read_bytes;
  store_bytes += other.store_bytes;
  moved_bytes += other.moved_bytes;
  return *this;
}

namespace {

void Add(NodeIndex node, const PassPlan& plan, Position position, std::uint32_t bytes,
         NodeShare& share) {
  const NodeIndex reader = plan.ReaderAt(position);
  const Decision decision = plan.At(position);
  const bool from_store = decision.holder == kNoNode;
  const NodeIndex from = from_store ? reader : decision.holder;
  const bool is_moved =
      decision.keep_at != kNoNode && decision.keep_at != reader && decision.keep_at != from;
  if (is_moved && from == node) share.moved_bytes += bytes;
  if (reader != node) return;
  ++share.reads;
  share.read_bytes += bytes;
  share.store_reads += from_store ? 1U : 0U;
  share.store_bytes += from_store ? bytes : 0U;
}

}  // namespace

NodeShare ShareOf(NodeIndex node, const PassPlan& plan, std::span<const SampleId> order,
                  const Sizes& sizes, Position until, const StopCheck& stop) {
  NodeShare share;
  if (node == kNoNode) return share;
  const Position end = std::min({until, plan.end(), Position{order.size()}});
  const auto add = [&](Position position) {
    Add(node, plan, position, sizes[order[static_cast<std::size_t>(position)]], share);
  };
  if (plan.stats().peer_hits > 0) {  // what others read may be sent on from here
    for (Position position = plan.begin(); position < end && !stop.At(position); ++position)
      add(position);
    return share;
  }
  const std::size_t ranks = plan.node_of_rank().size();
  std::size_t reads = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (plan.node_of_rank()[rank] != node) continue;
    const Position first = plan.begin() + (rank + ranks - plan.begin() % ranks) % ranks;
    for (Position position = first; position < end && !stop.At(reads++); position += ranks)
      add(position);
  }
  return share;
}

}  // namespace optcache::plan
