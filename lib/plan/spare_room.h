#pragma once

// Which part of each node's capacity its own reads do not need, where reads and room are spread
// unevenly over the nodes.
//
//   node     reads    capacity   needs      spare
//   0        2/3      1/2        2/3        none: it lacks 1/6
//   1        1/3      1/2        1/3        1/6
//
// A node needs as large a part of all capacity as it makes of all reads, but no more than the whole
// dataset. A node that no rank reads through has all its capacity to spare.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace optcache::plan {

struct SpareRoom {
  ByteCount capacity = 0;        // of all nodes together
  std::vector<ByteCount> bytes;  // by node; empty if hardly any node lacks room
  // By node: what it reads may be kept in the others' spare room. Not what a node without capacity
  // reads, as it may belong to another group of nodes, which keeps for it (docs/adr/0016); unless
  // there is a node that no rank reads through.
  std::vector<bool> used_by;
};

// `reads` and `capacities` by node. The sum of the capacities must fit in a ByteCount.
SpareRoom FindSpareRoom(std::span<const std::uint32_t> reads, std::span<const ByteCount> capacities,
                        ByteCount dataset);

// What is free at each node. Not thread-safe: a value with one owner.
class NodeRoom {
 public:
  explicit NodeRoom(std::size_t nodes) : free_(nodes) {}

  // Of `room`, the bytes `taken` are not free yet.
  void Set(NodeIndex node, ByteCount room, ByteCount taken);
  ByteCount total() const;
  void Free(NodeIndex node, ByteCount bytes) { free_[node] += bytes; }
  // False, and nothing taken, if the node has less.
  bool Take(NodeIndex node, ByteCount bytes);
  // At the first of the wanted nodes that has as much, else at the next one in turn of those with
  // room; kNoNode: none has as much. A wanted node may be kNoNode.
  NodeIndex TakeAny(const std::array<NodeIndex, 3>& wanted, ByteCount bytes);

 private:
  std::vector<ByteCount> free_;
  std::vector<NodeIndex> in_turn_;
  std::size_t turn_ = 0;
};

}  // namespace optcache::plan
