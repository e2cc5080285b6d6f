// Merges streams by virtual time: whose read comes next, one byte a read.
//
// The idea: the k-th read of a stream of rate r happens at time k / r. In a unit of time each
// stream makes r reads, and then all stand as before, a unit later. So TakeTurns merges one unit
// read by read, and the constructor copies these turns until a stream comes near its end (Repeats).
// Only the turns are stored; samples and readers come from the streams' own orders, which a Cursor
// walks in both directions.
//
// Invariant: times are integers (ticks, and a remainder for what a rate does not divide), and a tie
// goes to the first stream. So every node merges the same orders alike.

#include "plan/merged_order.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/check.h"

namespace optcache::plan {
namespace {

// Ticks in a unit of virtual time: fine enough for rates that are a few thousand apart, and small
// enough for 2^40 reads.
constexpr std::uint64_t kTicks = 1ULL << 24U;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// The times of one stream's reads: the k-th is made at k * kTicks / rate, rounded down.
class Pace {
 public:
  Pace(std::uint64_t reads_done, std::uint64_t reads_ahead, std::uint32_t rate)
      : left_(reads_ahead),
        rate_(rate),
        step_(kTicks / rate),
        step_remainder_(kTicks % rate),
        time_((reads_done + 1) * kTicks / rate),
        remainder_((reads_done + 1) * kTicks % rate) {}

  std::uint64_t left() const { return left_; }
  std::uint64_t rate() const { return rate_; }
  std::uint64_t next_time() const { return left_ == 0 ? kNever : time_; }
  void Advance() {
    --left_;
    time_ += step_;
    remainder_ += step_remainder_;
    if (remainder_ >= rate_) {
      remainder_ -= rate_;
      ++time_;
    }
  }
  // As `rate` reads, this many times: that is a unit of time each.
  void AdvanceUnits(std::uint64_t units) {
    left_ -= units * rate_;
    time_ += units * kTicks;
  }

 private:
  std::uint64_t left_;
  std::uint64_t rate_;
  std::uint64_t step_;
  std::uint64_t step_remainder_;
  std::uint64_t time_;
  std::uint64_t remainder_;
};

std::uint64_t ReadsAhead(const MergeStream& stream) {
  std::uint64_t reads = 0;
  for (const OrderSegment& segment : stream.segments)
    reads += segment.end - segment.begin;
  return reads;
}

// Takes turns by time: whose read comes next, `turns.size()` times.
void TakeTurns(std::vector<Pace>& paces, std::span<std::uint8_t> turns, const StopCheck& stop) {
  for (std::size_t i = 0; i < turns.size() && !stop.At(i); ++i) {
    std::size_t first = 0;
    for (std::size_t s = 1; s < paces.size(); ++s) {
      if (paces[s].next_time() < paces[first].next_time()) first = s;
    }
    turns[i] = static_cast<std::uint8_t>(first);
    paces[first].Advance();
  }
}

std::uint64_t ReadsInUnit(const std::vector<Pace>& paces) {
  std::uint64_t reads = 0;
  for (const Pace& pace : paces)
    reads += pace.left() > 0 ? pace.rate() : 0;
  return reads;
}

// How often the turns that led from `before` to `after` come again: if each stream made a unit's
// reads, all stands as it stood, a unit later, until one of them comes to its end.
std::uint64_t Repeats(const std::vector<Pace>& before, const std::vector<Pace>& after) {
  std::uint64_t repeats = kNever;
  for (std::size_t s = 0; s < before.size(); ++s) {
    if (before[s].left() == 0) continue;
    if (before[s].left() - after[s].left() != before[s].rate()) return 0;
    repeats = std::min(repeats, after[s].left() / after[s].rate());
  }
  return repeats;
}

}  // namespace

SampleId LargestOf(const std::vector<SampleId>& order, const StopCheck& stop) {
  SampleId largest = 0;
  for (std::size_t i = 0; i < order.size() && !stop.At(i); ++i)
    largest = std::max(largest, order[i]);
  return largest;
}

MergedOrder::MergedOrder(std::vector<MergeStream> streams, std::size_t max_reads, StopCheck stop)
    : streams_(std::move(streams)), stop_(std::move(stop)) {
  CHECK(streams_.size() <= kMaxStreams);
  std::vector<Pace> paces;
  std::uint64_t total = 0;
  for (const MergeStream& stream : streams_) {
    CHECK(stream.rate > 0);
    const std::uint64_t ahead = ReadsAhead(stream);
    paces.emplace_back(stream.reads_done, ahead, stream.rate);
    total += ahead;
  }
  const auto reads = static_cast<std::size_t>(std::min<std::uint64_t>(total, max_reads));
  stream_of_read_.Resize(reads);
  const std::span<std::uint8_t> all = stream_of_read_.span();
  while (size_ < reads && !stop_.Now()) {
    const std::vector<Pace> before = paces;
    const std::uint64_t left = reads - size_;
    const auto turns =
        all.subspan(size_, static_cast<std::size_t>(std::min(ReadsInUnit(paces), left)));
    TakeTurns(paces, turns, stop_);
    if (stop_.Now()) return;
    size_ += turns.size();
    const std::uint64_t repeats = std::min(Repeats(before, paces), left / turns.size() - 1);
    std::size_t look_at = size_;
    for (std::uint64_t i = 0; i < repeats; ++i) {
      if (size_ >= look_at) {
        if (stop_.Now()) return;
        look_at = size_ + StopCheck::kSteps;
      }
      std::ranges::copy(turns, all.subspan(size_).begin());
      size_ += turns.size();
    }
    for (Pace& pace : paces)
      if (pace.left() > 0) pace.AdvanceUnits(repeats);
  }
}

std::vector<std::uint64_t> MergedOrder::ReadsByStream(std::size_t reads) const {
  std::vector<std::uint64_t> counts(streams_.size());
  for (std::size_t i = 0; i < reads && !stop_.At(i); ++i)
    ++counts[stream_of_read_[i]];
  return counts;
}

MergedOrder::Cursor MergedOrder::End() const {
  Cursor cursor(*this);
  cursor.at_ = size();
  const std::vector<std::uint64_t> reads = ReadsByStream(size());
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    Cursor::Place& place = cursor.places_[s];
    std::uint64_t left = reads[s];
    while (left > place.end - place.position) {
      left -= place.end - place.position;
      Cursor::EnterAtFront(place, place.segment + 1);
    }
    place.position += left;
    if (place.ranks > 0) place.rank = static_cast<std::size_t>(place.position % place.ranks);
  }
  return cursor;
}

MergedOrder::Cursor::Cursor(const MergedOrder& merged)
    : merged_(&merged), places_(merged.streams_.size()) {
  for (std::size_t s = 0; s < places_.size(); ++s) {
    const MergeStream& stream = merged.streams_[s];
    if (stream.segments.empty()) continue;
    places_[s].node_of_rank = stream.node_of_rank.data();
    places_[s].ranks = stream.node_of_rank.size();
    EnterAtFront(places_[s], &stream.segments.front());
  }
}

void MergedOrder::Cursor::EnterAtFront(Place& place, const OrderSegment* segment) {
  place.segment = segment;
  place.ids = segment->order->data();
  place.begin = segment->begin;
  place.end = segment->end;
  place.position = segment->begin;
  place.rank = static_cast<std::size_t>(place.position % place.ranks);
}

void MergedOrder::Cursor::EnterAtBack(Place& place, const OrderSegment* segment) {
  EnterAtFront(place, segment);
  place.position = segment->end;
  place.rank = static_cast<std::size_t>(place.position % place.ranks);
}

}  // namespace optcache::plan
