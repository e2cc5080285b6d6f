#include "plan/fitted_base.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "plan/bit_vector.h"

namespace optcache::plan {
namespace {

std::vector<ByteCount> UsedOf(const Sizes& sizes, std::size_t nodes, const Holders& holders,
                              const StopCheck& stop) {
  std::vector<ByteCount> used(nodes);
  for (SampleId sample = 0; sample < holders.size() && !stop.At(sample); ++sample) {
    if (holders[sample] != kNoNode) used[holders[sample]] += sizes[sample];
  }
  return used;
}

// Who has most room, of equal ones the first. Room is only ever taken, so one that has less than it
// had when it was put in the queue is put in again when its turn comes.
class MostRoom {
 public:
  explicit MostRoom(std::vector<ByteCount> room) : room_(std::move(room)) {
    for (NodeIndex node = 0; node < room_.size(); ++node)
      queue_.push({.room = room_[node], .node = node});
  }

  ByteCount Of(NodeIndex node) const { return room_[node]; }
  void Take(NodeIndex node, ByteCount size) { room_[node] -= size; }
  // There is at least one node.
  NodeIndex Find() {
    while (queue_.top().room != room_[queue_.top().node]) {
      const NodeIndex node = queue_.top().node;
      queue_.pop();
      queue_.push({.room = room_[node], .node = node});
    }
    return queue_.top().node;
  }

 private:
  struct Offer {
    ByteCount room = 0;
    NodeIndex node = 0;
    bool operator<(const Offer& other) const {  // a queue gives the greatest
      return room != other.room ? room < other.room : node > other.node;
    }
  };
  std::vector<ByteCount> room_;
  std::priority_queue<Offer> queue_;
};

}  // namespace

bool Fits(const Sizes& sizes, std::span<const ByteCount> capacities, const Holders& holders,
          const StopCheck& stop) {
  return std::ranges::equal(UsedOf(sizes, capacities.size(), holders, stop), capacities,
                            std::less_equal());
}

FittedBase FitBase(const Sizes& sizes, std::span<const ByteCount> capacities,
                   std::span<const FirstRead> first_reads, Holders& holders,
                   const StopCheck& stop) {
  std::vector<ByteCount> used = UsedOf(sizes, capacities.size(), holders, stop);
  struct Leaving {
    Relocation move;
    NodeIndex reader = kNoNode;
  };
  std::vector<Leaving> leaving;
  const auto leave = [&](const FirstRead& read) {
    NodeIndex& holder = holders[read.sample];
    if (holder == kNoNode || used[holder] <= capacities[holder]) return;
    used[holder] -= sizes[read.sample];
    leaving.push_back({.move = {.sample = read.sample, .from = holder}, .reader = read.reader});
    holder = kNoNode;
  };
  // First what is not read, then what is read last.
  BitVector is_read(holders.size());
  for (std::size_t i = 0; i < first_reads.size() && !stop.At(i); ++i)
    is_read.Set(first_reads[i].sample);
  for (SampleId sample = 0; sample < holders.size() && !stop.At(sample); ++sample) {
    if (!is_read.Test(sample)) leave({.sample = sample});
  }
  for (std::size_t i = first_reads.size(); i-- > 0 && !stop.At(i);)
    leave(first_reads[i]);

  std::vector<ByteCount> left(capacities.size());
  std::ranges::transform(capacities, used, left.begin(), std::minus());
  MostRoom room(std::move(left));
  const auto receiver_of = [&](SampleId sample, NodeIndex reader) -> NodeIndex {
    if (reader != kNoNode && room.Of(reader) >= sizes[sample]) return reader;
    const NodeIndex most = room.Find();
    return room.Of(most) >= sizes[sample] ? most : kNoNode;
  };
  FittedBase fitted;
  for (std::size_t i = leaving.size(); i-- > 0 && !stop.At(i);) {
    auto& [move, reader] = leaving[i];
    move.to = receiver_of(move.sample, reader);
    holders[move.sample] = move.to;
    if (move.to == kNoNode) {
      fitted.evictions.push_back(move.sample);
      continue;
    }
    room.Take(move.to, sizes[move.sample]);
    // It may find room where it lay, beside larger ones that have gone.
    if (move.to != move.from) fitted.relocations.push_back(move);
  }
  return fitted;
}

}  // namespace optcache::plan
