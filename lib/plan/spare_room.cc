#include "plan/spare_room.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace optcache::plan {
namespace {

__extension__ using Wide = unsigned __int128;  // products of byte counts and reads

// If nodes lack less than this part of all capacity, it is not worth a second choice. Chance alone
// makes such a difference.
constexpr ByteCount kLeastPartLacking = 256;

// This part of what a node needs may be used by others, too: how much is read through a node
// changes by chance, and room of its own that it does not need at a time is lost.
constexpr ByteCount kSharedPart = 32;

}  // namespace

SpareRoom FindSpareRoom(std::span<const std::uint32_t> reads, std::span<const ByteCount> capacities,
                        ByteCount dataset) {
  const std::size_t nodes = capacities.size();
  bool any_idle = false;
  for (std::size_t n = 0; n < nodes; ++n)
    any_idle |= reads[n] == 0 && capacities[n] > 0;
  SpareRoom spare;
  std::uint64_t all_reads = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    spare.used_by.push_back(capacities[n] > 0 || any_idle);
    if (spare.used_by[n]) all_reads += reads[n];
    spare.capacity += capacities[n];
  }
  if (all_reads == 0) return spare;
  ByteCount lacking = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    const Wide needed = Wide{spare.capacity} * reads[n] / all_reads;
    const auto needs = static_cast<ByteCount>(std::min(needed, Wide{dataset}));
    if (spare.used_by[n]) lacking += needs - std::min(needs, capacities[n]);
    const ByteCount own = needs - needs / kSharedPart;
    spare.bytes.push_back(capacities[n] < needs ? 0 : capacities[n] - own);
  }
  if (lacking <= spare.capacity / kLeastPartLacking) spare.bytes.clear();
  return spare;
}

void NodeRoom::Set(NodeIndex node, ByteCount room, ByteCount taken) {
  free_[node] = room - taken;
  if (room > 0) in_turn_.push_back(node);
}

ByteCount NodeRoom::total() const {
  return std::accumulate(free_.begin(), free_.end(), ByteCount{0});
}

bool NodeRoom::Take(NodeIndex node, ByteCount bytes) {
  if (node == kNoNode || free_[node] < bytes) return false;
  free_[node] -= bytes;
  return true;
}

NodeIndex NodeRoom::TakeAny(const std::array<NodeIndex, 3>& wanted, ByteCount bytes) {
  for (const NodeIndex node : wanted) {
    if (Take(node, bytes)) return node;
  }
  for (std::size_t asked = 0; asked < in_turn_.size(); ++asked) {
    const NodeIndex node = in_turn_[turn_++ % in_turn_.size()];
    if (Take(node, bytes)) return node;
  }
  return kNoNode;
}

}  // namespace optcache::plan
