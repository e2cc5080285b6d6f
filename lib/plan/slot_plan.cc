// Computes the slot plan by linear walks over the reads that are left of the pass.
//
//   Load    next pass, last read first    a sample's first reader there, and what comes too late
//           present pass                  a step a read: whose room it frees, who could keep it
//   Plan    repeats, by MIN ─► [small samples] ─► reader's own ─► others' ─► spare nodes
//           each walk takes room in the order of reads; ComputeCredits runs between two walks
//   Commit  the steps become a PassPlan, and `holders` what nodes hold after the pass
//
// slot_plan.h says why the choice is optimal. The idea of its computation: room that a read frees
// is not all credit, since samples chosen in an earlier walk may need it later. ComputeCredits
// walks back from the end and finds, for each node, the least room from a read on. A walk that
// compares a sample with this one number therefore exceeds no node's capacity at any read. A read
// that frees nobody's room, or that no node could keep, has the node none(), whose credit is never
// enough. So the inner loops of most walks have no branches that depend on the orders, which no
// processor could predict, and they fetch entries by sample ahead.

#include "plan/slot_plan.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace optcache::plan {
namespace {

// An interval as MIN sees it: its end, then its begin, which are indices of steps.
using Ending = std::pair<std::uint32_t, std::uint32_t>;

// A sample's next reader that has no node; no node has this index.
constexpr NodeIndex kNodeless = kNoNode - 1;

// Nodes that are asked for spare room for one sample.
constexpr std::size_t kSpareNodesAsked = 4;

// Room at "none": so little that releases there never make it positive.
constexpr std::int64_t kNoRoom = std::numeric_limits<std::int64_t>::min() / 2;

// The node of each read in turn, without a division a read.
class ReaderCursor {
 public:
  ReaderCursor(std::span<const NodeIndex> node_of_rank, Position position)
      : node_of_rank_(node_of_rank),
        rank_(static_cast<std::size_t>(position % node_of_rank.size())) {}

  NodeIndex Next() {
    const NodeIndex node = node_of_rank_[rank_];
    if (++rank_ == node_of_rank_.size()) rank_ = 0;
    return node;
  }
  // The one before that which Next would give.
  NodeIndex Previous() {
    if (rank_ == 0) rank_ = node_of_rank_.size();
    return node_of_rank_[--rank_];
  }

 private:
  std::span<const NodeIndex> node_of_rank_;
  std::size_t rank_;
};

// Fetches what a loop over an order will need a few reads on: entries by sample lie all over
// memory.
class LinePrefetcher {
 public:
  explicit LinePrefetcher(std::span<const SampleId> order) : order_(order) {}

  template <typename Entry>
  void Ahead(std::size_t i, const std::vector<Entry>& by_sample) const {
    if (i + kReads < order_.size()) Fetch(i + kReads, by_sample);
  }
  template <typename Entry>
  void Behind(std::size_t i, const std::vector<Entry>& by_sample) const {
    if (i >= kReads) Fetch(i - kReads, by_sample);
  }

 private:
  static constexpr std::size_t kReads = 32;

  template <typename Entry>
  void Fetch(std::size_t i, const std::vector<Entry>& by_sample) const {
    __builtin_prefetch(&by_sample[order_[i]]);
  }

  std::span<const SampleId> order_;
};

// The smallest samples that fit in `capacity` together. Finds the first size of which there are too
// many, by its upper half, then by its lower one: in linear time, and a part at a time.
BitVector SmallestThatFit(const Sizes& sizes, ByteCount capacity, const StopCheck& stop) {
  constexpr std::uint64_t kLast = 0xffff;
  std::uint64_t limit = 0;  // smaller ones fit
  for (const unsigned shift : {16U, 0U}) {
    std::vector<ByteCount> bytes(kLast + 1);
    for (SampleId sample = 0; sample < sizes.count() && !stop.At(sample); ++sample) {
      const std::uint64_t size = sizes[sample];
      if (size >> shift >> 16U == limit >> shift >> 16U) bytes[(size >> shift) & kLast] += size;
    }
    std::uint64_t part = 0;
    for (; part < kLast && bytes[part] <= capacity; ++part)
      capacity -= bytes[part];
    limit |= part << shift;
  }
  BitVector smallest(sizes.count());
  for (SampleId sample = 0; sample < sizes.count() && !stop.At(sample); ++sample) {
    const std::uint64_t size = sizes[sample];
    if (size > limit || (size == limit && size > capacity)) continue;
    if (size == limit) capacity -= size;
    smallest.Set(sample);
  }
  return smallest;
}

}  // namespace

SlotPlanner::SlotPlanner(Options options) : options_(std::move(options)) {
  if (options_.objective == Objective::kRequests && !options_.sizes.equal()) {
    const ByteCount capacity =
        std::accumulate(options_.capacities.begin(), options_.capacities.end(), ByteCount{0});
    small_ = SmallestThatFit(options_.sizes, capacity, options_.stop);
  }
}

SlotPlanner::Irregular SlotPlanner::Load(const Pass& pass, const Holders& holders) {
  pass_ = pass;
  Irregular irregular;
  Fill(next_reader_, options_.sizes.count(), kNoNode, options_.stop);
  if (options_.stop.Now()) return irregular;
  irregular.repeats = LoadNextReaders();
  if (!options_.stop.Now()) LoadSteps(holders, irregular);
  return irregular;
}

// Walks the next pass from its end, so that a sample's first reader is the one that remains.
// Returns how often a sample occurs again.
//
// With unequal sizes it also marks the samples that would come too late: what a large sample leaves
// free near the end of the next pass can no longer be filled, because too few bytes are still to be
// read there. Of the bytes that remain at its read, a share 1 - c is not already kept, and one
// node's share of those are candidates for its room. Where nearly all is kept there is little that
// could have its room instead: no more is given up than that.
std::uint64_t SlotPlanner::LoadNextReaders() {
  const Sizes& sizes = options_.sizes;
  const ByteCount capacity =
      std::accumulate(options_.capacities.begin(), options_.capacities.end(), ByteCount{0});
  const bool mark_late = !sizes.equal() && capacity < sizes.total();
  const ByteCount percent_not_kept = mark_late ? 100 - capacity * 100 / sizes.total() : 100;
  const ByteCount nodes = options_.capacities.size();
  ByteCount replaceable = mark_late ? sizes.total() - capacity : 0;
  if (mark_late) too_late_ = BitVector(sizes.count());

  std::uint64_t repeats = 0;
  ByteCount remaining = 0;
  const LinePrefetcher prefetch(pass_.next);
  ReaderCursor readers(pass_.node_of_rank, pass_.next.size());
  for (std::size_t p = pass_.next.size(); p-- > 0 && !options_.stop.At(p);) {
    prefetch.Behind(p, next_reader_);
    const SampleId sample = pass_.next[p];
    if (next_reader_[sample] != kNoNode) ++repeats;
    const NodeIndex reader = readers.Previous();
    next_reader_[sample] = reader == kNoNode ? kNodeless : reader;
    if (!mark_late) continue;
    const ByteCount bytes = sizes[sample];
    if (bytes <= replaceable && bytes * nodes * 100 > remaining * percent_not_kept) {
      too_late_.Set(sample);
      replaceable -= bytes;
    }
    remaining += bytes;
  }
  return repeats;
}

void SlotPlanner::LoadSteps(const Holders& holders, Irregular& irregular) {
  const std::size_t count = pass_.current.size() - static_cast<std::size_t>(pass_.begin);
  const bool may_be_late = !too_late_.empty();
  const Sizes& sizes = options_.sizes;
  steps_.Resize(count);
  seen_ = BitVector(options_.sizes.count());
  std::uint64_t repeats = 0;
  const LinePrefetcher prefetch(pass_.current);
  ReaderCursor readers(pass_.node_of_rank, pass_.begin);
  for (std::size_t i = 0; i < count && !options_.stop.At(i); ++i) {
    prefetch.Ahead(pass_.begin + i, holders);
    prefetch.Ahead(pass_.begin + i, next_reader_);
    const SampleId sample = pass_.current[pass_.begin + i];
    const NodeIndex reader = readers.Next();
    repeats += std::uint64_t{seen_.Test(sample)};
    seen_.Set(sample);
    const NodeIndex next = next_reader_[sample];
    irregular.missing += std::uint64_t{next == kNoNode};
    const bool movable = (sizes[sample] <= options_.max_moved_bytes_per_sample) | (next == reader);
    const bool late = may_be_late && too_late_.Test(sample);
    // The indices that are no node's are above none(). A branch here would wait for memory.
    steps_[i].release = std::min(holders[sample], none());
    steps_[i].target = (movable & !late) ? std::min(next, none()) : none();
  }
  irregular.repeats = std::max(irregular.repeats, repeats);
  has_repeats_ = repeats > 0;
}

// Samples that occur more than once: between two occurrences they are intervals, only the first
// releases what was held before the pass, only the last may be kept for the next pass. They are few
// where a pass is planned, so that sorting them is one step.
void SlotPlanner::LoadRepeats() {
  intervals_.clear();
  if (!has_repeats_) return;
  BitVector seen(options_.sizes.count());
  BitVector repeated(options_.sizes.count());
  const auto reads = pass_.current.subspan(static_cast<std::size_t>(pass_.begin));
  for (std::size_t i = 0; i < reads.size() && !options_.stop.At(i); ++i) {
    if (seen.Test(reads[i])) repeated.Set(reads[i]);
    seen.Set(reads[i]);
  }
  std::vector<std::pair<SampleId, std::uint32_t>> occurrences;
  for (std::size_t i = 0; i < reads.size() && !options_.stop.At(i); ++i) {
    if (repeated.Test(reads[i])) occurrences.emplace_back(reads[i], static_cast<std::uint32_t>(i));
  }
  std::sort(occurrences.begin(), occurrences.end());
  for (std::size_t i = 1; i < occurrences.size() && !options_.stop.At(i); ++i) {
    const auto [sample, begin] = occurrences[i - 1];
    const auto [same_sample, end] = occurrences[i];
    if (sample != same_sample) continue;
    const NodeIndex node = ReaderOf(end);
    steps_[begin].target = none();
    steps_[end].release = none();
    const bool movable =
        node == ReaderOf(begin) || options_.sizes[sample] <= options_.max_moved_bytes_per_sample;
    if (node == kNoNode || !movable) continue;
    intervals_.push_back({.begin = begin, .end = end});
  }
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
}

// What a stopped step leaves behind is not whole, but within its bounds: the others end at once.
SlotPlanner::Output SlotPlanner::Plan(Holders& holders) {
  Output output;
  if (options_.stop.Now()) return output;  // then not all may be loaded
  LoadRepeats();
  FindRoom(holders, output.evictions);
  kept_ = BitVector(steps_.size());
  ChooseIntervals();
  if (intervals_.empty()) {
    CreditEveryRelease();
  } else {
    ComputeCredits(RoomAtEnd());
  }
  if (!small_.empty()) {
    small_alone_ = true;
    ChooseForNextPass();
    small_alone_ = false;
    ComputeCredits(RoomAtEnd());
  }
  ChooseForNextPass();
  ChooseSpare();
  output.plan = Commit(holders);
  return output;
}

// With the credits computed.
void SlotPlanner::ChooseForNextPass() {
  Choose(Candidates::kOfReader);
  ComputeCredits(RoomAtEnd());
  Choose(Candidates::kOfOthers);
}

void SlotPlanner::FindRoom(Holders& holders, std::vector<SampleId>& evictions) {
  start_room_.assign(options_.capacities.begin(), options_.capacities.end());
  for (SampleId sample = 0; sample < holders.size() && !options_.stop.At(sample); ++sample) {
    if (holders[sample] == kNoNode) continue;
    const bool in_next = next_reader_[sample] != kNoNode && next_reader_[sample] != kNodeless;
    if (!seen_.Test(sample) && !in_next) {
      holders[sample] = kNoNode;
      evictions.push_back(sample);
      continue;
    }
    start_room_[holders[sample]] -= options_.sizes[sample];
  }
  for (const std::int64_t room : start_room_)
    CHECK(room >= 0);
  start_room_.push_back(kNoRoom);
}

// MIN among the intervals inside the pass: when a node has no room for all, the one that ends last
// goes. Room only grows until then, so looking at the present is enough.
void SlotPlanner::ChooseIntervals() {
  if (intervals_.empty()) return;
  ByNode room = start_room_;
  std::vector<std::set<Ending>> open(options_.capacities.size());
  std::vector<Ending> endings;
  for (const Interval& interval : intervals_)
    endings.emplace_back(interval.end, interval.begin);
  std::sort(endings.begin(), endings.end());
  auto starting = intervals_.begin();
  auto ending = endings.begin();
  for (std::uint32_t i = 0; i < steps_.size() && !options_.stop.At(i); ++i) {
    room[steps_[i].release] += BytesAt(i);
    if (ending != endings.end() && ending->first == i) {
      const NodeIndex node = ReaderOf(i);
      if (open[node].erase(*ending) > 0) {
        kept_.Set(ending->second);
        steps_[ending->second].target = node;
        steps_[i].release = node;
        room[node] += BytesAt(i);
      }
      ++ending;
    }
    if (starting == intervals_.end() || starting->begin != i) continue;
    const NodeIndex node = ReaderOf(starting->end);
    open[node].emplace(starting->end, i);
    room[node] -= BytesAt(i);
    ++starting;
    while (room[node] < 0) {
      const auto last = std::prev(open[node].end());
      room[node] += BytesAt(last->second);
      open[node].erase(last);
    }
  }
}

// While nothing is chosen, every release is credit.
void SlotPlanner::CreditEveryRelease() {
  credits_.Resize(steps_.size());
  for (std::size_t i = 0; i < steps_.size() && !options_.stop.At(i); ++i)
    credits_[i] = BytesAt(i);
  start_credit_ = start_room_;
}

SlotPlanner::ByNode SlotPlanner::RoomAtEnd() const {
  ByNode room = start_room_;
  for (std::size_t i = 0; i < steps_.size() && !options_.stop.At(i); ++i) {
    const std::int64_t bytes = BytesAt(i);
    room[steps_[i].release] += bytes;
    room[steps_[i].target] -= kept_.Test(i) ? bytes : 0;
  }
  return room;
}

// From what is already chosen: how much room each release really adds, that is, by how much the
// least room from that read on exceeds the least room from the read before. Room that a later,
// already chosen sample needs is no credit.
void SlotPlanner::ComputeCredits(ByNode room_at_end) {
  credits_.Resize(steps_.size());
  ByNode room = std::move(room_at_end);  // after the read that the loop stands at
  ByNode least = room;                   // from that read on
  for (std::size_t i = steps_.size(); i-- > 0 && !options_.stop.At(i);) {
    const Step step = steps_[i];
    const std::int64_t bytes = BytesAt(i);
    room[step.target] += kept_.Test(i) ? bytes : 0;
    room[step.release] -= bytes;
    const std::int64_t before = std::min(least[step.release], room[step.release]);
    credits_[i] = static_cast<std::uint32_t>(least[step.release] - before);
    least[step.release] = before;
  }
  start_credit_ = std::move(least);
}

// Keeps, in order, every candidate of one kind for which there is credit.
void SlotPlanner::Choose(Candidates which) {
  const bool of_reader = which == Candidates::kOfReader;
  ByNode credit = start_credit_;
  credit[none()] = kNoRoom;
  ReaderCursor readers(pass_.node_of_rank, pass_.begin);
  for (std::size_t i = 0; i < steps_.size() && !options_.stop.At(i); ++i) {
    const Step step = steps_[i];
    const std::int64_t bytes = BytesAt(i);
    credit[step.release] += credits_[i];
    const auto right_kind = static_cast<unsigned>((step.target == readers.Next()) == of_reader);
    const bool right_size = !small_alone_ || small_.Test(pass_.current[pass_.begin + i]);
    const bool wanted = ((right_kind & static_cast<unsigned>(!kept_.Test(i))) != 0) & right_size;
    const bool keep = wanted & (bytes <= credit[step.target]);
    credit[step.target] -= keep ? bytes : 0;
    kept_.SetIf(i, keep);
  }
}

// Those that the pass leaves with room for whichever sample.
std::vector<NodeIndex> SlotPlanner::SpareNodes(const ByNode& room_at_end) const {
  const auto largest =
      std::min<ByteCount>(options_.sizes.largest(), options_.max_moved_bytes_per_sample);
  std::vector<NodeIndex> spare;
  for (NodeIndex node = 0; node < none(); ++node) {
    if (room_at_end[node] > 0 && static_cast<ByteCount>(room_at_end[node]) >= largest)
      spare.push_back(node);
  }
  return spare;
}

// Keeps, in order, what else could be kept: where it lies, or at the spare nodes in turn.
void SlotPlanner::ChooseSpare() {
  const ByNode room_at_end = RoomAtEnd();
  const std::vector<NodeIndex> spare = SpareNodes(room_at_end);
  if (spare.empty()) return;
  ComputeCredits(room_at_end);
  ByNode credit = start_credit_;
  std::size_t turn = 0;
  for (std::size_t i = 0; i < steps_.size() && !options_.stop.At(i); ++i) {
    Step& step = steps_[i];
    const std::int64_t bytes = BytesAt(i);
    credit[step.release] += credits_[i];
    if (kept_.Test(i) || step.target == none()) continue;
    NodeIndex keeper = none();
    if (step.release != none() && credit[step.release] >= bytes) {
      keeper = step.release;
    } else if (static_cast<ByteCount>(bytes) <= options_.max_moved_bytes_per_sample) {
      for (std::size_t asked = 0; asked < kSpareNodesAsked && keeper == none(); ++asked) {
        const NodeIndex node = spare[turn++ % spare.size()];
        if (credit[node] >= bytes) keeper = node;
      }
    }
    if (keeper == none()) continue;
    credit[keeper] -= bytes;
    step.target = keeper;
    kept_.Set(i);
  }
}

std::shared_ptr<const PassPlan> SlotPlanner::Commit(Holders& holders) {
  PassPlanBuilder builder({.key = pass_.key,
                           .begin = pass_.begin,
                           .end = pass_.current.size(),
                           .pass_length = pass_.current.size()},
                          {pass_.node_of_rank.begin(), pass_.node_of_rank.end()},
                          options_.capacities.size());
  const LinePrefetcher prefetch(pass_.current);
  ReaderCursor readers(pass_.node_of_rank, pass_.begin);
  for (std::size_t i = 0; i < steps_.size() && !options_.stop.At(i); ++i) {
    prefetch.Ahead(pass_.begin + i, holders);
    const SampleId sample = pass_.current[pass_.begin + i];
    const Step step = steps_[i];
    const NodeIndex holder = step.release == none() ? kNoNode : step.release;
    const NodeIndex keep_at = kept_.Test(i) ? step.target : kNoNode;
    builder.Add(readers.Next(), holder, keep_at, options_.sizes[sample]);
    holders[sample] = keep_at;
  }
  return options_.stop.Now() ? nullptr : builder.Finish(options_.stop);
}

}  // namespace optcache::plan
