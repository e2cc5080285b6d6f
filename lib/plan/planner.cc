// Decides which orders are looked at, which method plans them, and how long a window is.
//
//   Next ─► ActiveStreams   streams that read on, the order of their present pass loaded
//        ─► FitBase         once: what finds no room at its holder is moved or evicted
//        ─► several streams, or Method::kMin      PlanByMin, a pass ahead of the window
//           one stream that shuffles              PlanBySlots, the rest of its pass
//           one that does not, or is cut short    PlanByMin, two passes ahead
//        ─► Tidy, DigestOf
//
// A stream shuffles if nearly every read of its pass has exactly one next read in the next pass:
// SlotPlanner::Load counts those that do not, and changes nothing if the stream goes to MIN
// instead.
//
// Invariants: `holders_` is what nodes hold at the end of the windows given so far, and fits in the
// capacities after FitBase. A stream keeps only the orders from its present pass on. Streams are in
// the order of their ids, and all arithmetic is in integers, so every node gets the same plan. A
// step that was stopped leaves halves behind: CheckStop stands after each of them.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <deque>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "plan/bit_vector.h"
#include "plan/fitted_base.h"
#include "plan/plan.h"
#include "plan/slot_plan.h"
#include "plan/window_plan.h"

namespace optcache::plan {
namespace {

// A window holds at most this many passes' worth of reads, however far apart the streams' rates
// are.
constexpr std::uint64_t kMaxPassesInWindow = 4;
// Nor more than this, so that uses can be numbered in 32 bits with room for what lies ahead.
constexpr std::uint64_t kMaxReadsInWindow = 1ULL << 30U;
// A stream shuffles if at most one read in this many has no single next read in the next pass.
constexpr std::uint64_t kRegularShare = 64;

// How far MIN looks behind its window. One pass shows the next read of every sample, two of nearly
// every sample if passes leave some out; more was never worth anything.
constexpr std::uint64_t kPassesAhead = 1;
constexpr std::uint32_t kPassesAheadWhenIrregular = 2;

constexpr std::uint64_t kWindowDigestSeed = 0x6f70742d77696e64ULL;  // "opt-wind"

std::uint64_t DigestOf(const PlanWindow& window, const StopCheck& stop) {
  std::uint64_t digest = Random::Mix(kWindowDigestSeed ^ window.evictions.size());
  for (std::size_t i = 0; i < window.evictions.size() && !stop.At(i); ++i)
    digest = Random::Mix(digest ^ window.evictions[i]);
  for (const auto& plan : window.plans)
    digest = Random::Mix(digest ^ plan->digest());
  return digest;
}

// The same ids in rising order; none is there twice. In linear time, and a part at a time.
void SortIds(const BitVector& ids, std::vector<SampleId>& sorted, const StopCheck& stop) {
  sorted.clear();
  const std::span<const std::uint64_t> words = ids.words();
  for (std::size_t i = 0; i < words.size() && !stop.At(i * 64); ++i) {
    for (std::uint64_t left = words[i]; left != 0; left &= left - 1)
      sorted.push_back(static_cast<SampleId>(i * 64) +
                       static_cast<SampleId>(std::countr_zero(left)));
  }
}

void Append(std::vector<SampleId> more, std::vector<SampleId>& ids) {
  if (ids.empty()) return ids.swap(more);
  ids.insert(ids.end(), more.begin(), more.end());
}

// Sorts the evictions, and leaves out the moves of samples that are evicted.
void Tidy(PlanWindow& window, std::size_t samples, const StopCheck& stop) {
  if (window.evictions.empty()) return;
  BitVector evicted(samples);
  for (std::size_t i = 0; i < window.evictions.size() && !stop.At(i); ++i)
    evicted.Set(window.evictions[i]);
  SortIds(evicted, window.evictions, stop);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < window.relocations.size() && !stop.At(i); ++i) {
    const Relocation move = window.relocations[i];
    if (!evicted.Test(move.sample)) window.relocations[kept++] = move;
  }
  window.relocations.resize(kept);
}

// The front of an order.
Order CutAt(const Order& order, std::size_t end, const StopCheck& stop) {
  const std::span<const SampleId> whole(*order);
  std::vector<SampleId> cut;
  cut.reserve(end);
  while (cut.size() < end && !stop.Now()) {
    const auto part = whole.subspan(cut.size(), std::min(end - cut.size(), StopCheck::kSteps));
    cut.insert(cut.end(), part.begin(), part.end());
  }
  return std::make_shared<const std::vector<SampleId>>(std::move(cut));
}

// A stream and how far it is planned.
struct Stream {
  StreamInput input;
  PassNumber pass = 0;
  Position position = 0;
  std::uint64_t reads_planned = 0;
  std::deque<Order> orders;  // of `pass` and those after it, as far as they were needed
  bool all_loaded = false;   // there is no pass after orders.back()

  // Reads in a pass that is not cut short; 0 before the first order is known.
  std::uint64_t whole_pass = 0;

  bool truncated() const { return input.stops_at < whole_pass; }
  void AdvanceBy(std::uint64_t reads);
};

void Stream::AdvanceBy(std::uint64_t reads) {
  reads_planned += reads;
  position += reads;
  while (!orders.empty() && position >= orders.front()->size()) {
    position -= orders.front()->size();
    orders.pop_front();
    ++pass;
  }
}

Status CheckInputs(const Inputs& inputs) {
  const auto invalid = [](std::string message) {
    return Status(Code::kInvalidArgument, std::move(message));
  };
  const std::size_t nodes = inputs.capacities.size();
  if (nodes == 0 || nodes >= kNoNode) {
    return invalid("plan: " + std::to_string(nodes) + " nodes; it takes 1 to 65534");
  }
  if (inputs.streams.size() > MergedOrder::kMaxStreams) {
    return invalid("plan: " + std::to_string(inputs.streams.size()) + " streams; at most " +
                   std::to_string(MergedOrder::kMaxStreams) + " share a dataset's cache");
  }
  if (!inputs.base.empty() && inputs.base.size() != inputs.sizes.count()) {
    return invalid("plan: the base names " + std::to_string(inputs.base.size()) +
                   " samples, the dataset has " + std::to_string(inputs.sizes.count()));
  }
  const auto is_node = [nodes](NodeIndex node) { return node < nodes || node == kNoNode; };
  for (std::size_t s = 0; s < inputs.base.size() && !inputs.stop.At(s); ++s) {
    if (is_node(inputs.base[s])) continue;
    return invalid("plan: the base has sample " + std::to_string(s) + " at node " +
                   std::to_string(inputs.base[s]) + " of " + std::to_string(nodes));
  }
  for (const StreamInput& stream : inputs.streams) {
    const std::string name = "plan: stream " + std::to_string(stream.id) + ": ";
    if (stream.node_of_rank.empty()) return invalid(name + "it has no ranks");
    if (stream.rate > kMaxRate) {
      return invalid(name + "rate " + std::to_string(stream.rate) + " is above " +
                     std::to_string(kMaxRate));
    }
    if (stream.stops_at == 0) return invalid(name + "its passes stop at position 0");
    for (const NodeIndex node : stream.node_of_rank) {
      if (is_node(node)) continue;
      return invalid(name + "a rank is on node " + std::to_string(node) + " of " +
                     std::to_string(nodes));
    }
  }
  return OkStatus();
}

}  // namespace

class Planner::Impl {
 public:
  Impl(Inputs inputs, OrderProvider provider)
      : inputs_(std::move(inputs)),
        provider_(std::move(provider)),
        holders_(std::move(inputs_.base)),
        slots_({.sizes = inputs_.sizes,
                .capacities = inputs_.capacities,
                .max_moved_bytes_per_sample = inputs_.max_moved_bytes_per_sample,
                .objective = inputs_.objective,
                .stop = inputs_.stop}) {
    for (const StreamInput& input : inputs_.streams) {
      streams_.push_back({.input = input,
                          .pass = input.pass,
                          .position = input.position,
                          .reads_planned = 0,
                          .orders = {},
                          .all_loaded = false,
                          .whole_pass = 0});
    }
    holders_.resize(inputs_.sizes.count(), kNoNode);
  }

  Result<PlanWindow> Next();
  const Holders& holders() const { return holders_; }

 private:
  // Asked where a step that may have been stopped is over.
  Status CheckStop() const {
    return inputs_.stop.Now() ? Status(Code::kCancelled, "plan: not wanted any more") : OkStatus();
  }
  struct Ahead {
    MergedOrder merged;
    std::size_t window;
    std::vector<StreamId> ids;
    std::uint32_t passes;  // of the stream that has most of them there
  };

  Status Load(Stream& stream, std::size_t passes);
  Result<std::vector<Stream*>> ActiveStreams();
  Result<bool> PlanBySlots(Stream& stream, PlanWindow& window);
  Result<Ahead> LookAhead(const std::vector<Stream*>& active, std::uint64_t passes_ahead);
  Status PlanByMin(const std::vector<Stream*>& active, std::uint64_t passes_ahead,
                   PlanWindow& window);
  Status FitBase(const std::vector<Stream*>& active, PlanWindow& window);

  Inputs inputs_;
  OrderProvider provider_;
  Holders holders_;
  SlotPlanner slots_;
  std::vector<Stream> streams_;
  bool base_checked_ = false;
};

// Makes the orders of `passes` passes from the current one on known, as far as the stream has them.
Status Planner::Impl::Load(Stream& stream, std::size_t passes) {
  while (!stream.all_loaded && stream.orders.size() < passes) {
    const auto pass = static_cast<PassNumber>(stream.pass + stream.orders.size());
    RETURN_IF_ERROR(CheckStop());
    Order order = provider_(stream.input.id, pass);
    RETURN_IF_ERROR(CheckStop());  // it may be null for that
    if (order == nullptr) {
      stream.all_loaded = true;
      break;
    }
    const auto where = [&] {
      return "plan: stream " + std::to_string(stream.input.id) + ", pass " + std::to_string(pass);
    };
    if (order->empty()) return Status(Code::kInvalidArgument, where() + ": its order is empty");
    const SampleId largest = LargestOf(*order, inputs_.stop);
    if (largest >= inputs_.sizes.count()) {
      return Status(Code::kInvalidArgument, where() + ": sample " + std::to_string(largest) +
                                                " of a dataset of " +
                                                std::to_string(inputs_.sizes.count()));
    }
    stream.whole_pass = order->size();
    if (stream.truncated())
      order = CutAt(order, static_cast<std::size_t>(stream.input.stops_at), inputs_.stop);
    RETURN_IF_ERROR(CheckStop());
    stream.orders.push_back(std::move(order));
  }
  return OkStatus();
}

// Those that read on, their current pass loaded. A stream at the end of its last pass is over.
Result<std::vector<Stream*>> Planner::Impl::ActiveStreams() {
  std::vector<Stream*> active;
  for (Stream& stream : streams_) {
    if (stream.input.rate == 0) continue;
    RETURN_IF_ERROR(Load(stream, 1));
    // A cut may lie at the end of its pass, or where nothing is read any more.
    if (!stream.orders.empty())
      stream.position = std::min<Position>(stream.position, stream.orders.front()->size());
    stream.AdvanceBy(0);
    RETURN_IF_ERROR(Load(stream, 1));
    if (!stream.orders.empty()) active.push_back(&stream);
  }
  return active;
}

Result<PlanWindow> Planner::Impl::Next() {
  ASSIGN_OR_RETURN(const std::vector<Stream*> active, ActiveStreams());
  PlanWindow window;
  if (active.empty()) {  // what the nodes hold stays for who comes next
    window.digest = DigestOf(window, inputs_.stop);
    return window;
  }
  if (!std::exchange(base_checked_, true)) RETURN_IF_ERROR(FitBase(active, window));
  if (inputs_.method == Method::kMin || active.size() > 1) {
    RETURN_IF_ERROR(PlanByMin(active, kPassesAhead, window));
  } else {
    bool shuffles = !active.front()->truncated();
    if (shuffles) {
      ASSIGN_OR_RETURN(shuffles, PlanBySlots(*active.front(), window));
    }
    if (!shuffles) RETURN_IF_ERROR(PlanByMin(active, kPassesAheadWhenIrregular, window));
  }
  Tidy(window, inputs_.sizes.count(), inputs_.stop);
  window.digest = DigestOf(window, inputs_.stop);
  RETURN_IF_ERROR(CheckStop());
  return window;
}

// False, and nothing changed, if the stream does not shuffle.
Result<bool> Planner::Impl::PlanBySlots(Stream& stream, PlanWindow& window) {
  RETURN_IF_ERROR(Load(stream, 2));
  const std::vector<SampleId>& current = *stream.orders.front();
  const bool last = stream.orders.size() == 1;
  const SlotPlanner::Irregular irregular =
      slots_.Load({.key = {.stream = stream.input.id, .pass = stream.pass},
                   .begin = stream.position,
                   .current = current,
                   .next = last ? std::span<const SampleId>() : *stream.orders[1],
                   .node_of_rank = stream.input.node_of_rank},
                  holders_);
  RETURN_IF_ERROR(CheckStop());
  const std::uint64_t odd_reads = irregular.repeats + (last ? 0 : irregular.missing);
  if (odd_reads > current.size() / kRegularShare + stream.input.node_of_rank.size()) return false;
  SlotPlanner::Output output = slots_.Plan(holders_);
  RETURN_IF_ERROR(CheckStop());
  Append(std::move(output.evictions), window.evictions);
  window.plans.push_back(std::move(output.plan));
  stream.AdvanceBy(current.size() - stream.position);
  return true;
}

// Merges what lies ahead: a window as long as the slowest stream's pass, and `passes_ahead` times
// as much behind it.
Result<Planner::Impl::Ahead> Planner::Impl::LookAhead(const std::vector<Stream*>& active,
                                                      std::uint64_t passes_ahead) {
  std::vector<std::uint64_t> reads(active.size());  // of each stream in the window
  std::uint64_t pass_reads = 0;
  for (std::size_t s = 0; s < active.size(); ++s) {
    for (const Stream* other : active) {
      reads[s] = std::max(reads[s], other->whole_pass * active[s]->input.rate / other->input.rate);
    }
    pass_reads += active[s]->whole_pass;
  }
  const std::uint64_t all = std::accumulate(reads.begin(), reads.end(), std::uint64_t{0});
  const std::uint64_t limit = std::min(kMaxPassesInWindow * pass_reads, kMaxReadsInWindow);
  const std::uint64_t divisor = all / limit + 1;

  std::vector<MergeStream> ahead;
  std::vector<StreamId> ids;
  std::uint64_t window = 0;
  std::uint64_t horizon = 0;
  std::size_t passes = 0;
  for (std::size_t s = 0; s < active.size(); ++s) {
    Stream& stream = *active[s];
    const std::uint64_t in_window = std::max<std::uint64_t>(reads[s] / divisor, 1);
    const std::uint64_t wanted = in_window * (1 + passes_ahead);
    MergeStream& merge = ahead.emplace_back(MergeStream{.segments = {},
                                                        .node_of_rank = stream.input.node_of_rank,
                                                        .rate = stream.input.rate,
                                                        .reads_done = stream.reads_planned});
    std::uint64_t got = 0;
    for (std::size_t i = 0; got < wanted; ++i) {
      RETURN_IF_ERROR(Load(stream, i + 1));
      if (i == stream.orders.size()) break;
      const Position begin = i == 0 ? stream.position : 0;
      const Position end = stream.orders[i]->size();
      const auto pass = static_cast<PassNumber>(stream.pass + i);
      merge.segments.push_back(
          {.order = stream.orders[i], .pass = pass, .begin = begin, .end = end});
      got += end - begin;
    }
    window += std::min(got, in_window);
    horizon += std::min(got, wanted);
    ids.push_back(stream.input.id);
    passes = std::max(passes, merge.segments.size());
  }
  MergedOrder merged(std::move(ahead), horizon, inputs_.stop);
  RETURN_IF_ERROR(CheckStop());
  return Ahead{.merged = std::move(merged),
               .window = window,
               .ids = std::move(ids),
               .passes = static_cast<std::uint32_t>(passes)};
}

Status Planner::Impl::PlanByMin(const std::vector<Stream*>& active, std::uint64_t passes_ahead,
                                PlanWindow& window) {
  ASSIGN_OR_RETURN(const Ahead ahead, LookAhead(active, passes_ahead));
  WindowOutput output =
      PlanWindowByMin({.sizes = inputs_.sizes,
                       .capacities = inputs_.capacities,
                       .max_moved_bytes_per_sample = inputs_.max_moved_bytes_per_sample,
                       .merged = ahead.merged,
                       .window = ahead.window,
                       .stream_ids = ahead.ids,
                       .stop = inputs_.stop},
                      holders_);
  RETURN_IF_ERROR(CheckStop());
  Append(std::move(output.evictions), window.evictions);
  window.plans = std::move(output.plans);
  const bool any_truncated = std::ranges::any_of(active, &Stream::truncated);
  window.passes_ahead = static_cast<std::uint32_t>(any_truncated ? ahead.passes : passes_ahead);
  const std::vector<std::uint64_t> reads = ahead.merged.ReadsByStream(ahead.window);
  for (std::size_t s = 0; s < active.size(); ++s) {
    active[s]->AdvanceBy(reads[s]);
  }
  return CheckStop();
}

// A base may come from members that have less room now, or have left.
Status Planner::Impl::FitBase(const std::vector<Stream*>& active, PlanWindow& window) {
  if (Fits(inputs_.sizes, inputs_.capacities, holders_, inputs_.stop)) return CheckStop();
  ASSIGN_OR_RETURN(const Ahead ahead, LookAhead(active, 1));
  std::vector<FirstRead> first_reads;
  first_reads.reserve(holders_.size());
  BitVector is_read(holders_.size());
  MergedOrder::Cursor cursor(ahead.merged);
  for (std::size_t t = 0; t < ahead.merged.size() && !inputs_.stop.At(t); ++t) {
    const MergedOrder::Read read = cursor.Next();
    if (is_read.Test(read.sample)) continue;
    is_read.Set(read.sample);
    first_reads.push_back({.sample = read.sample, .reader = read.reader});
  }
  RETURN_IF_ERROR(CheckStop());
  FittedBase fitted =
      plan::FitBase(inputs_.sizes, inputs_.capacities, first_reads, holders_, inputs_.stop);
  RETURN_IF_ERROR(CheckStop());
  window.evictions = std::move(fitted.evictions);
  window.relocations = std::move(fitted.relocations);
  return OkStatus();
}

Result<Planner> Planner::Make(Inputs inputs, OrderProvider orders) {
  RETURN_IF_ERROR(CheckInputs(inputs));
  // A node needs no more than the dataset, and sums of capacities must not overflow.
  for (ByteCount& capacity : inputs.capacities) {
    capacity = std::min(capacity, inputs.sizes.total());
  }
  const auto by_id = [](const StreamInput& a, const StreamInput& b) { return a.id < b.id; };
  std::sort(inputs.streams.begin(), inputs.streams.end(), by_id);
  const auto same_id = [](const StreamInput& a, const StreamInput& b) { return a.id == b.id; };
  const auto twice = std::adjacent_find(inputs.streams.begin(), inputs.streams.end(), same_id);
  if (twice != inputs.streams.end()) {
    return Error(Code::kInvalidArgument,
                 "plan: stream " + std::to_string(twice->id) + " is given twice");
  }
  return Planner(std::make_unique<Impl>(std::move(inputs), std::move(orders)));
}

Planner::Planner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;
Planner::~Planner() = default;

Result<PlanWindow> Planner::Next() {
  return impl_->Next();
}
const Holders& Planner::holders() const {
  return impl_->holders();
}

}  // namespace optcache::plan
