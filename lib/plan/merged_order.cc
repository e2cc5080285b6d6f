#include "plan/merged_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace optcache::plan {
namespace {

// Ticks in a unit of virtual time: fine enough for rates that are a few thousand apart, and small
// enough for 2^40 reads.
constexpr std::uint64_t kTicks = 1ULL << 24U;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::uint64_t TimeOf(std::uint64_t read, std::uint32_t rate) {
  return (read + 1) * kTicks / rate;
}

std::uint64_t ReadsAhead(const MergeStream& stream) {
  std::uint64_t reads = 0;
  for (const OrderSegment& segment : stream.segments)
    reads += segment.end - segment.begin;
  return reads;
}

}  // namespace

MergedOrder::MergedOrder(std::vector<MergeStream> streams, std::size_t max_reads)
    : streams_(std::move(streams)) {
  CHECK(streams_.size() <= kMaxStreams);
  struct Upcoming {
    std::uint64_t time = kNever;
    std::uint64_t read = 0;
    std::uint64_t end = 0;
  };
  std::vector<Upcoming> upcoming;
  std::uint64_t total = 0;
  for (const MergeStream& stream : streams_) {
    CHECK(stream.rate > 0);
    const std::uint64_t ahead = ReadsAhead(stream);
    const std::uint64_t read = stream.reads_done;
    const std::uint64_t time = ahead == 0 ? kNever : TimeOf(read, stream.rate);
    upcoming.push_back({.time = time, .read = read, .end = read + ahead});
    total += ahead;
  }
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(total, max_reads));
  stream_of_read_.reserve(count);
  while (stream_of_read_.size() < count) {
    const auto first =
        std::min_element(upcoming.begin(), upcoming.end(),
                         [](const Upcoming& a, const Upcoming& b) { return a.time < b.time; });
    const auto stream = static_cast<std::uint8_t>(first - upcoming.begin());
    stream_of_read_.push_back(stream);
    ++first->read;
    first->time = first->read == first->end ? kNever : TimeOf(first->read, streams_[stream].rate);
  }
}

std::vector<std::uint64_t> MergedOrder::ReadsByStream(std::size_t reads) const {
  std::vector<std::uint64_t> counts(streams_.size());
  for (std::size_t i = 0; i < reads; ++i)
    ++counts[stream_of_read_[i]];
  return counts;
}

MergedOrder::Cursor MergedOrder::End() const {
  Cursor cursor(*this);
  for (std::size_t i = 0; i < size(); ++i)
    cursor.Next();
  return cursor;
}

MergedOrder::Cursor::Cursor(const MergedOrder& merged)
    : merged_(&merged), places_(merged.streams_.size()) {
  for (std::size_t s = 0; s < places_.size(); ++s) {
    const auto& segments = merged.streams_[s].segments;
    if (segments.empty()) continue;
    Enter(places_[s], &segments.front(), segments.front().begin, static_cast<std::uint8_t>(s));
  }
}

void MergedOrder::Cursor::Enter(Place& place, const OrderSegment* segment, Position position,
                                std::uint8_t stream) {
  const auto& node_of_rank = merged_->streams_[stream].node_of_rank;
  place = {.segment = segment,
           .ids = segment->order->data(),
           .position = position,
           .rank = static_cast<std::size_t>(position % node_of_rank.size())};
}

MergedOrder::Read MergedOrder::Cursor::Next() {
  const std::uint8_t stream = merged_->stream_of_read_[at_++];
  Place& place = places_[stream];
  if (place.position == place.segment->end) {
    const OrderSegment* next = place.segment + 1;
    Enter(place, next, next->begin, stream);
  }
  const auto& node_of_rank = merged_->streams_[stream].node_of_rank;
  const Read read{
      .sample = place.ids[place.position], .reader = node_of_rank[place.rank], .stream = stream};
  ++place.position;
  if (++place.rank == node_of_rank.size()) place.rank = 0;
  return read;
}

MergedOrder::Read MergedOrder::Cursor::Previous() {
  const std::uint8_t stream = merged_->stream_of_read_[--at_];
  Place& place = places_[stream];
  if (place.position == place.segment->begin) {
    const OrderSegment* previous = place.segment - 1;
    Enter(place, previous, previous->end, stream);
  }
  const auto& node_of_rank = merged_->streams_[stream].node_of_rank;
  if (place.rank == 0) place.rank = node_of_rank.size();
  --place.rank;
  --place.position;
  return {
      .sample = place.ids[place.position], .reader = node_of_rank[place.rank], .stream = stream};
}

}  // namespace optcache::plan
