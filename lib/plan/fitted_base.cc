#include "plan/fitted_base.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace optcache::plan {
namespace {

std::vector<ByteCount> UsedOf(const Sizes& sizes, std::size_t nodes, const Holders& holders) {
  std::vector<ByteCount> used(nodes);
  for (SampleId sample = 0; sample < holders.size(); ++sample) {
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

bool Fits(const Sizes& sizes, std::span<const ByteCount> capacities, const Holders& holders) {
  return std::ranges::equal(UsedOf(sizes, capacities.size(), holders), capacities,
                            std::less_equal());
}

FittedBase FitBase(const Sizes& sizes, std::span<const ByteCount> capacities,
                   std::span<const FirstRead> first_reads, Holders& holders) {
  std::vector<ByteCount> used = UsedOf(sizes, capacities.size(), holders);
  const auto over = [&](NodeIndex node) { return used[node] > capacities[node]; };
  std::vector<SampleId> last_first;
  for (SampleId sample = 0; sample < holders.size(); ++sample) {
    if (holders[sample] != kNoNode && over(holders[sample])) last_first.push_back(sample);
  }
  std::ranges::stable_sort(last_first, std::greater<>(),
                           [&](SampleId sample) { return first_reads[sample].read; });
  std::vector<Relocation> leaving;
  for (const SampleId sample : last_first) {
    if (!over(holders[sample])) continue;
    used[holders[sample]] -= sizes[sample];
    leaving.push_back({.sample = sample, .from = holders[sample]});
    holders[sample] = kNoNode;
  }

  std::vector<ByteCount> left(capacities.size());
  std::ranges::transform(capacities, used, left.begin(), std::minus());
  MostRoom room(std::move(left));
  const auto receiver_of = [&](SampleId sample) -> NodeIndex {
    const NodeIndex reader = first_reads[sample].reader;
    if (reader != kNoNode && room.Of(reader) >= sizes[sample]) return reader;
    const NodeIndex most = room.Find();
    return room.Of(most) >= sizes[sample] ? most : kNoNode;
  };
  FittedBase fitted;
  for (auto move = leaving.rbegin(); move != leaving.rend(); ++move) {
    move->to = receiver_of(move->sample);
    holders[move->sample] = move->to;
    if (move->to == kNoNode) {
      fitted.evictions.push_back(move->sample);
      continue;
    }
    room.Take(move->to, sizes[move->sample]);
    // It may find room where it lay, beside larger ones that have gone.
    if (move->to != move->from) fitted.relocations.push_back(*move);
  }
  return fitted;
}

}  // namespace optcache::plan
