// Plans a window: each node numbers its own reads, and runs MIN on these numbers.
//
//   merged order, in time     n0 n1 n0 n0 n1
//   use                        0  3  1  2  4      node 0 has uses [0, 3), node 1 has [3, 5)
//   next_use_                  1  4  -  -  -      the same sample's next use, of any node
//
// CountUses finds how many uses each node has, from the ranks and without the samples. LinkUses
// walks the order back and links each read to the sample's next use. Simulate walks it forward: a
// read is an offer to the node of the next use, and each node takes its events in blocks, so that
// its memory is near. What MIN decides is one bit a use, `kept_`: the sample was kept until then.
// EmitPlans reads all from these bits: a read is a hit if its own use is kept, and its sample stays
// if the next use is.
//
// Where some node has spare room, KeepInSpareRoom walks the order once more, as one node whose uses
// are all reads, numbered by time: `kept_spare_`. EmitPlans then finds a node for each sample that
// is kept so. For equal sizes there always is one: a sample stays at its node until it is read, and
// no more are kept at a time than there is room for.
//
// Invariants: a kept sample has one name, its next use. What lies elsewhere than at its next reader
// keeps its room there until it is read: the node's spare room is smaller by it, or the rest of its
// capacity. Belady never keeps more than the capacity, so no plan does.

#include "plan/window_plan.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "plan/belady.h"
#include "plan/spare_room.h"
#include "plan/uncleared.h"

namespace optcache::plan {
namespace {

// A use is a read as its node numbers it: node n's uses are [first_use_[n], first_use_[n + 1]), in
// time. Reads by ranks without a node form one more group, at the end, for which nothing is kept.
using Use = std::uint32_t;
constexpr Use kNoUse = std::numeric_limits<Use>::max();
// The reads that nodes are told at once take 8 bytes each: a small part of all.
constexpr std::size_t kLeastBlocks = 32;
// A group is found by its block of uses, then by steps.
constexpr Use kUsesInBlock = 1024;
// How many reads ahead entries by sample or use, which lie all over memory, are fetched.
constexpr std::size_t kFetchedReads = 32;
// If more is read than fits in all nodes together, but by no more than this part of it.
constexpr ByteCount kNearlyAll = 32;

// Of room that was taken, as much as `bytes` gives back.
ByteCount GiveBack(ByteCount& taken, ByteCount bytes) {
  const ByteCount back = std::min(taken, bytes);
  taken -= back;
  return back;
}

class WindowPlanner {
 public:
  WindowPlanner(const WindowInput& input, Holders& holders)
      : input_(input),
        stop_(input.stop),
        holders_(holders),
        nodes_(input.capacities.size()),
        room_(nodes_) {}

  // What a stopped step leaves behind is not whole: the next one must not see it.
  WindowOutput Run() {
    WindowOutput output;
    CountUses();
    if (stop_.Now()) return output;
    FindSpareRoom();
    LinkUses();
    if (stop_.Now()) return output;
    EvictUnused(output.evictions);
    if (stop_.Now()) return output;
    Simulate();
    if (stop_.Now()) return output;
    KeepInSpareRoom();
    if (stop_.Now()) return output;
    EvictGivenUp(output.evictions);
    if (stop_.Now()) return output;
    EmitPlans(output.plans);
    UpdateHolders();
    return output;
  }

 private:
  std::size_t GroupOf(NodeIndex reader) const { return reader == kNoNode ? nodes_ : reader; }
  std::size_t GroupOfUse(Use use) const {
    std::size_t group = group_of_block_[use / kUsesInBlock];
    while (use >= first_use_[group + 1])
      ++group;
    return group;
  }
  auto BytesOfUse(std::size_t node) const {
    return [this, node](Use local) -> ByteCount {
      return input_.sizes.equal() ? input_.sizes[0]
                                  : input_.sizes[sample_of_use_[first_use_[node] + local]];
    };
  }

  void CountUses();
  void LinkUses();
  void NoteUsesAfterWindow();
  void EvictUnused(std::vector<SampleId>& evictions);
  void PlaceHeld(std::vector<Belady>& nodes);
  // What happens to a node when it has made its uses before `clock`: a sample that it uses at `use`
  // could be kept; or, where that is another's use, a sample that waited here for it has been read.
  struct Event {
    Use clock;
    Use use;
  };
  void Simulate();
  void RunEvents(std::size_t node, std::span<const Event> events, Use& taken,
                 ByteCount& taken_from_own, Belady& belady) const;
  std::uint32_t BytesOfUseAnywhere(Use use) const {
    return input_.sizes[input_.sizes.equal() ? SampleId{0} : sample_of_use_[use]];
  }
  ByteCount BytesOfTime(Use time) const {
    return BytesOfUseAnywhere(input_.sizes.equal() ? 0 : use_of_time_[time]);
  }
  bool AtPeer(Use use) const { return !at_peer_.empty() && at_peer_.Test(use); }
  bool HasSpareRoom() const { return !spare_.bytes.empty(); }
  ByteCount SpareOf(std::size_t node) const { return HasSpareRoom() ? spare_.bytes[node] : 0; }
  // All that is read, or nearly, fits in all nodes together. Then a node gives nothing up for what
  // is used sooner: what it has given up leaves room of the time before in which nothing fits.
  bool HasRoomForAll() const {
    return HasSpareRoom() && bytes_read_ <= spare_.capacity + spare_.capacity / kNearlyAll;
  }
  bool KeptInSpareRoom(Use use) const { return !kept_spare_.empty() && kept_spare_.Test(use); }
  void FindSpareRoom();
  void KeepInSpareRoom();
  void OfferHeld(Belady& spare);
  void EvictGivenUp(std::vector<SampleId>& evictions);
  void EmitPlans(std::vector<std::shared_ptr<const PassPlan>>& plans);
  void UpdateHolders();
  std::vector<std::vector<PassPlanBuilder>> MakeBuilders() const;

  const WindowInput& input_;
  const StopCheck stop_;
  Holders& holders_;
  std::size_t nodes_;
  std::vector<Use> first_use_;                 // by group, and one past the last
  std::vector<std::uint16_t> group_of_block_;  // of the first use of each block
  Uncleared<Use> next_use_;                    // by merged read: the same sample's next use
  std::vector<Use> use_of_sample_;             // its first use from the start of the window
  std::vector<Use> use_after_window_;  // by sample, its first use from the end of the window
  Uncleared<SampleId> sample_of_use_;  // empty for equal sizes
  BitVector kept_;                     // by use: the sample was kept until then
  BitVector at_peer_;  // by use: the sample waits at another node; empty if none does
  // By node: of what waits there for readers elsewhere, the bytes for which its spare room is too
  // small. They are given back first.
  std::vector<ByteCount> taken_from_own_;
  bool gave_up_ = false;  // not all was kept that could be

  // The rest is empty if no node has room to spare, or all is kept without.
  SpareRoom spare_;
  ByteCount bytes_read_ = 0;    // of all samples that are read
  NodeRoom room_;               // what is free of the spare room
  Uncleared<Use> time_of_use_;  // the merged read
  Uncleared<Use> use_of_time_;  // its inverse; empty for equal sizes
  BitVector kept_spare_;        // by use: the sample was kept in spare room until then
};

// How many of the positions before `end` a rank reads.
std::uint64_t PositionsOfRank(Position end, std::size_t rank, std::size_t ranks) {
  return end / ranks + (end % ranks > rank ? 1U : 0U);
}

void WindowPlanner::CountUses() {
  const std::size_t reads = input_.merged.size();
  CHECK(reads < kNoUse);
  first_use_.assign(nodes_ + 2, 0);
  std::vector<std::uint64_t> left = input_.merged.ReadsByStream(reads);
  if (stop_.Now()) return;
  for (std::size_t s = 0; s < left.size(); ++s) {
    const MergeStream& stream = input_.merged.streams()[s];
    const std::size_t ranks = stream.node_of_rank.size();
    for (const OrderSegment& segment : stream.segments) {
      const Position end = segment.begin + std::min(left[s], segment.end - segment.begin);
      left[s] -= end - segment.begin;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::uint64_t uses =
            PositionsOfRank(end, rank, ranks) - PositionsOfRank(segment.begin, rank, ranks);
        first_use_[GroupOf(stream.node_of_rank[rank]) + 1] += static_cast<Use>(uses);
      }
      if (stop_.Now()) return;
    }
  }
  std::partial_sum(first_use_.begin(), first_use_.end(), first_use_.begin());
  std::uint16_t group = 0;
  for (std::size_t use = 0; use < reads; use += kUsesInBlock) {
    while (use >= first_use_[group + std::size_t{1}])
      ++group;
    group_of_block_.push_back(group);
  }
}

void WindowPlanner::LinkUses() {
  const std::size_t reads = input_.merged.size();
  std::vector<Use> use_end(first_use_.begin() + 1, first_use_.end());
  next_use_.Resize(reads);
  Fill(use_of_sample_, input_.sizes.count(), kNoUse, stop_);
  if (!input_.sizes.equal()) sample_of_use_.Resize(reads);
  if (HasSpareRoom()) time_of_use_.Resize(reads);
  if (HasSpareRoom() && !input_.sizes.equal()) use_of_time_.Resize(reads);
  MergedOrder::Cursor cursor = input_.merged.End();
  if (stop_.Now()) return;               // then it may not be at the end, nor all be filled
  MergedOrder::Cursor fetcher = cursor;  // runs before it and fetches what it needs
  for (std::size_t t = reads; t > reads - std::min(reads, kFetchedReads); --t)
    fetcher.Previous();
  for (std::size_t t = reads; t-- > 0 && !stop_.At(t);) {
    if (t + 1 == input_.window) NoteUsesAfterWindow();
    if (t >= kFetchedReads) __builtin_prefetch(&use_of_sample_[fetcher.Previous().sample]);
    const MergedOrder::Read read = cursor.Previous();
    const Use use = --use_end[GroupOf(read.reader)];
    next_use_[t] = std::exchange(use_of_sample_[read.sample], use);
    if (!input_.sizes.equal()) sample_of_use_[use] = read.sample;
    if (!HasSpareRoom()) continue;
    time_of_use_[use] = static_cast<Use>(t);
    if (!input_.sizes.equal()) use_of_time_[t] = use;
    if (next_use_[t] == kNoUse) bytes_read_ += input_.sizes[read.sample];
  }
}

void WindowPlanner::NoteUsesAfterWindow() {
  const std::span<const Use> uses = use_of_sample_;
  use_after_window_.reserve(uses.size());
  for (std::size_t at = 0; at < uses.size() && !stop_.Now(); at += StopCheck::kSteps) {
    const auto part = uses.subspan(at, std::min(uses.size() - at, StopCheck::kSteps));
    use_after_window_.insert(use_after_window_.end(), part.begin(), part.end());
  }
}

void WindowPlanner::EvictUnused(std::vector<SampleId>& evictions) {
  for (SampleId sample = 0; sample < holders_.size() && !stop_.At(sample); ++sample) {
    if (holders_[sample] == kNoNode || use_of_sample_[sample] != kNoUse) continue;
    evictions.push_back(sample);
    holders_[sample] = kNoNode;
  }
}

// What is held at its next reader takes part in the choice; what is held elsewhere keeps its room
// there until it is read, spare room as far as there is some.
void WindowPlanner::PlaceHeld(std::vector<Belady>& nodes) {
  std::vector<ByteCount> waiting(nodes_);
  for (SampleId sample = 0; sample < holders_.size() && !stop_.At(sample); ++sample) {
    const NodeIndex holder = holders_[sample];
    if (holder == kNoNode || GroupOfUse(use_of_sample_[sample]) == holder) continue;
    waiting[holder] += input_.sizes[sample];
    if (at_peer_.empty()) at_peer_ = BitVector(input_.merged.size());
    at_peer_.Set(use_of_sample_[sample]);
  }
  for (NodeIndex n = 0; n < nodes_; ++n) {
    const ByteCount in_spare = std::min(waiting[n], SpareOf(n));
    const ByteCount in_own = waiting[n] - in_spare;
    CHECK(in_own <= nodes[n].capacity());
    nodes[n].SetCapacity(nodes[n].capacity() - in_own, BytesOfUse(n));
    taken_from_own_.push_back(in_own);
    room_.Set(n, SpareOf(n), in_spare);
  }
  for (SampleId sample = 0; sample < holders_.size() && !stop_.At(sample); ++sample) {
    const NodeIndex holder = holders_[sample];
    if (holder == kNoNode) continue;
    const Use use = use_of_sample_[sample];
    if (GroupOfUse(use) != holder) continue;
    nodes[holder].Offer(use - first_use_[holder], input_.sizes[sample], BytesOfUse(holder));
  }
}

void WindowPlanner::Simulate() {
  const std::size_t reads = input_.merged.size();
  std::vector<Belady> nodes;
  for (std::size_t n = 0; n < nodes_; ++n) {
    nodes.emplace_back(first_use_[n + 1] - first_use_[n], input_.capacities[n] - SpareOf(n));
    if (stop_.Now()) return;
  }
  PlaceHeld(nodes);
  const std::size_t block = std::min(input_.block, reads / kLeastBlocks + 1);
  std::vector<std::vector<Event>> events(nodes_);
  std::vector<Use> clock = first_use_;
  std::vector<Use> taken = first_use_;
  std::vector<ByteCount> taken_from_own = taken_from_own_;
  MergedOrder::Cursor cursor(input_.merged);
  for (std::size_t t = 0; t < reads && !stop_.Now();) {
    for (const std::size_t end = std::min(reads, t + block); t < end && !stop_.At(t); ++t) {
      const MergedOrder::Read read = cursor.Next();
      const std::size_t group = GroupOf(read.reader);
      const Use use = clock[group]++;
      if (AtPeer(use)) {
        const NodeIndex holder = holders_[read.sample];
        events[holder].push_back({.clock = clock[holder], .use = use});
      }
      if (next_use_[t] == kNoUse) continue;
      const std::size_t keeper = GroupOfUse(next_use_[t]);
      if (keeper == nodes_) continue;
      if (keeper != group && input_.sizes[read.sample] > input_.max_moved_bytes_per_sample)
        continue;
      events[keeper].push_back({.clock = clock[keeper], .use = next_use_[t]});
    }
    for (std::size_t n = 0; n < nodes_; ++n) {
      RunEvents(n, events[n], taken[n], taken_from_own[n], nodes[n]);
      events[n].clear();
    }
  }
  kept_ = BitVector(reads);
  for (std::size_t n = 0; n < nodes_ && !stop_.Now(); ++n) {
    kept_.Paste(first_use_[n], nodes[n].words());
    gave_up_ |= nodes[n].gave_up();
  }
}

void WindowPlanner::RunEvents(std::size_t node, std::span<const Event> events, Use& taken,
                              ByteCount& taken_from_own, Belady& belady) const {
  const Use first = first_use_[node];
  const Use end = first_use_[node + 1];
  const auto bytes_of_use = BytesOfUse(node);
  for (std::size_t i = 0; i < events.size() && !stop_.At(i); ++i) {
    const Event& event = events[i];
    for (; taken < event.clock; ++taken) {
      if (stop_.At(taken)) return;
      belady.Take(taken - first, bytes_of_use(taken - first));
    }
    const std::uint32_t bytes = BytesOfUseAnywhere(event.use);
    if (event.use < first || end <= event.use) {
      const ByteCount own = GiveBack(taken_from_own, bytes);
      belady.SetCapacity(belady.capacity() + own, bytes_of_use);
    } else if (HasRoomForAll()) {
      belady.OfferIfRoom(event.use - first, bytes);
    } else {
      belady.Offer(event.use - first, bytes, bytes_of_use);
    }
  }
}

void WindowPlanner::FindSpareRoom() {
  std::vector<std::uint32_t> reads;
  for (std::size_t n = 0; n < nodes_; ++n)
    reads.push_back(first_use_[n + 1] - first_use_[n]);
  spare_ = plan::FindSpareRoom(reads, input_.capacities, input_.sizes.total());
}

// As one node whose uses are all reads.
void WindowPlanner::KeepInSpareRoom() {
  if (!HasSpareRoom() || !gave_up_) return;
  const auto reads = static_cast<Use>(input_.merged.size());
  kept_spare_ = BitVector(reads);
  Belady spare(reads, room_.total());
  if (stop_.Now()) return;
  OfferHeld(spare);
  const auto bytes_at = [this](Use time) { return BytesOfTime(time); };
  std::vector<Use> use_of_group = first_use_;
  std::vector<ByteCount> taken_from_own = taken_from_own_;
  MergedOrder::Cursor cursor(input_.merged);
  for (Use t = 0; t < reads && !stop_.At(t); ++t) {
    const MergedOrder::Read read = cursor.Next();
    const Use use = use_of_group[GroupOf(read.reader)]++;
    const std::uint32_t bytes = input_.sizes[read.sample];
    if (spare.Take(t, bytes)) kept_spare_.Set(use);
    if (AtPeer(use)) {
      const ByteCount own = GiveBack(taken_from_own[holders_[read.sample]], bytes);
      spare.SetCapacity(spare.capacity() + bytes - own, bytes_at);
    }
    const Use next = next_use_[t];
    if (next == kNoUse || kept_.Test(next) || bytes > input_.max_moved_bytes_per_sample) continue;
    const std::size_t reader = GroupOfUse(next);
    if (reader != nodes_ && spare_.used_by[reader])
      spare.Offer(time_of_use_[next], bytes, bytes_at);
  }
}

// What is held at its next reader, and not kept there for that, may stay in spare room of that
// node.
void WindowPlanner::OfferHeld(Belady& spare) {
  NodeRoom room = room_;
  const auto bytes_at = [this](Use time) { return BytesOfTime(time); };
  for (SampleId sample = 0; sample < holders_.size() && !stop_.At(sample); ++sample) {
    const NodeIndex holder = holders_[sample];
    if (holder == kNoNode) continue;
    const Use use = use_of_sample_[sample];
    const ByteCount bytes = input_.sizes[sample];
    if (kept_.Test(use) || AtPeer(use) || !room.Take(holder, bytes)) continue;
    spare.Offer(time_of_use_[use], bytes, bytes_at);
  }
}

void WindowPlanner::EvictGivenUp(std::vector<SampleId>& evictions) {
  for (SampleId sample = 0; sample < holders_.size() && !stop_.At(sample); ++sample) {
    if (holders_[sample] == kNoNode) continue;
    const Use use = use_of_sample_[sample];
    if (kept_.Test(use) || AtPeer(use)) continue;
    if (KeptInSpareRoom(use) && room_.Take(holders_[sample], input_.sizes[sample])) continue;
    evictions.push_back(sample);
    holders_[sample] = kNoNode;
  }
}

// By stream, the passes that the window reaches into, the first on top.
std::vector<std::vector<PassPlanBuilder>> WindowPlanner::MakeBuilders() const {
  std::vector<std::vector<PassPlanBuilder>> builders;
  std::vector<std::uint64_t> reads_left = input_.merged.ReadsByStream(input_.window);
  for (std::size_t s = 0; s < reads_left.size(); ++s) {
    const MergeStream& stream = input_.merged.streams()[s];
    auto& of_stream = builders.emplace_back();
    for (const OrderSegment& segment : stream.segments) {
      if (reads_left[s] == 0) break;
      const std::uint64_t reads = std::min(reads_left[s], segment.end - segment.begin);
      reads_left[s] -= reads;
      of_stream.emplace_back(
          PassPlanBuilder::Range{.key = {.stream = input_.stream_ids[s], .pass = segment.pass},
                                 .begin = segment.begin,
                                 .end = segment.begin + reads,
                                 .pass_length = segment.end},
          stream.node_of_rank, nodes_);
      if (stop_.Now()) return builders;
    }
  }
  return builders;
}

void WindowPlanner::EmitPlans(std::vector<std::shared_ptr<const PassPlan>>& plans) {
  std::vector<std::vector<PassPlanBuilder>> builders = MakeBuilders();
  if (stop_.Now()) return;
  std::vector<std::size_t> current(builders.size());
  std::vector<Use> use_of_group = first_use_;
  MergedOrder::Cursor cursor(input_.merged);
  for (std::size_t t = 0; t < input_.window && !stop_.At(t); ++t) {
    const Use later = next_use_[std::min(t + kFetchedReads, next_use_.size() - 1)];
    if (later != kNoUse) kept_.Prefetch(later);
    const MergedOrder::Read read = cursor.Next();
    const Use use = use_of_group[GroupOf(read.reader)]++;
    const std::uint32_t bytes = input_.sizes[read.sample];
    NodeIndex holder = kNoNode;
    if (kept_.Test(use)) {
      holder = read.reader;
    } else if (AtPeer(use)) {
      holder = holders_[read.sample];
      room_.Free(holder, bytes - GiveBack(taken_from_own_[holder], bytes));
    } else if (KeptInSpareRoom(use)) {
      holder = holders_[read.sample];
      if (holder != kNoNode) room_.Free(holder, bytes);
    }
    const Use next = next_use_[t];
    NodeIndex keep_at = kNoNode;
    if (next != kNoUse && kept_.Test(next)) {
      keep_at = static_cast<NodeIndex>(GroupOfUse(next));
    } else if (next != kNoUse && KeptInSpareRoom(next)) {
      const auto reader = static_cast<NodeIndex>(GroupOfUse(next));
      keep_at = room_.TakeAny({reader, holder, read.reader}, bytes);
    }
    std::size_t& at = current[read.stream];
    if (builders[read.stream][at].full()) ++at;
    builders[read.stream][at].Add(read.reader, holder, keep_at, bytes);
    if (!kept_spare_.empty()) holders_[read.sample] = keep_at;
  }
  if (stop_.Now()) return;
  for (auto& of_stream : builders) {
    for (PassPlanBuilder& builder : of_stream)
      plans.push_back(builder.Finish(stop_));
  }
}

// Where no spare room is used, what the window's last read of a sample says follows from its next
// use.
void WindowPlanner::UpdateHolders() {
  if (!kept_spare_.empty()) return;
  for (SampleId sample = 0; sample < holders_.size() && !stop_.At(sample); ++sample) {
    const Use next = use_after_window_[sample];
    if (next == use_of_sample_[sample]) continue;  // not read in the window
    const bool kept = next != kNoUse && kept_.Test(next);
    holders_[sample] = kept ? static_cast<NodeIndex>(GroupOfUse(next)) : kNoNode;
  }
}

}  // namespace

WindowOutput PlanWindowByMin(const WindowInput& input, Holders& holders) {
  return WindowPlanner(input, holders).Run();
}

}  // namespace optcache::plan
