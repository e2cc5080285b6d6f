// Keeps three marks in a rank's list, and moves them as the trainer asks and as samples are staged.
//
//   begin ── delivered ── low_water_ ── with workers ── asked_until_ ── staged ── frontier_ ── end
//
// The order above is the usual one. A trainer that asks faster than samples are staged passes the
// frontier, and NextToStage then skips what has been asked for. Reads near asked_until_ move it at
// once. One far beyond it moves nothing until kSkipReads of them follow each other: then the
// trainer has skipped a part, and what is staged far before it is let go. asked_ and delivered_ are
// bits by index, which grow as needed, so a pass costs little until it is read. A list that grows
// with the pass has no index by id: little of it is ahead of the trainer, and that is searched.

#include "sidecar/prefetch/pass.h"

#include <algorithm>
#include <string>
#include <utility>

namespace optcache::sidecar {
namespace {

// This many reads that were not predicted are a different order: fewer are somebody looking at a
// few samples between batches.
constexpr std::uint64_t kUnpredictedMin = 32;
constexpr std::uint64_t kUnpredictedPart = 8;

}  // namespace

void Pass::StopAt(std::uint64_t stops_at, std::uint64_t slack) {
  stops_at_ = stops_at;
  slack_ = slack;
}

void Pass::Distrust() {
  trusted_ = false;
  UnstageAll();
}

Status Pass::Append(std::uint64_t first, std::span<const SampleId> ids) {
  if (growing_ == nullptr) {
    if (order_ != nullptr) return {Code::kInvalidArgument, "the pass's whole list is here already"};
    growing_ = std::make_shared<RankPass>();
    order_ = growing_;
  }
  const std::uint64_t known = growing_->ids.size();
  if (first > known) {
    return {Code::kInvalidArgument, "a list goes on at index " + std::to_string(first) +
                                        ", but only " + std::to_string(known) + " ids have come"};
  }
  ids = ids.subspan(std::min<std::size_t>(known - first, ids.size()));
  growing_->ids.insert(growing_->ids.end(), ids.begin(), ids.end());
  span_.end = std::max<std::uint64_t>(span_.end, growing_->ids.size());
  return OkStatus();
}

bool Pass::Agrees(std::uint64_t index, SampleId id) const {
  if (growing_ != nullptr && index >= growing_->ids.size()) return true;
  return !predicted() || (index < order_->ids.size() && order_->ids[index] == id);
}

std::optional<std::uint64_t> Pass::FindUnasked(SampleId id) const {
  if (!predicted()) return std::nullopt;
  const auto& ids = order_->ids;
  if (growing_ != nullptr) {  // little of it is ahead of the trainer
    for (std::uint64_t i = low_water_; i < ids.size(); ++i) {
      if (ids[i] == id && !asked(i)) return i;
    }
    return std::nullopt;
  }
  auto at = std::lower_bound(
      order_->by_id.begin(), order_->by_id.end(), id,
      [&ids](std::uint32_t index, SampleId wanted) { return ids[index] < wanted; });
  for (; at != order_->by_id.end() && ids[*at] == id; ++at) {
    if (Contains(*at) && !asked(*at)) return *at;
  }
  return std::nullopt;
}

bool Pass::NoteUnpredicted() {
  ++unpredicted_;
  return unpredicted_ > kUnpredictedMin && unpredicted_ > delivered_count_ / kUnpredictedPart;
}

bool Pass::Test(const std::vector<bool>& bits, std::uint64_t index) const {
  const std::uint64_t at = index - span_.begin;
  return at < bits.size() && bits[at];
}

void Pass::Set(std::vector<bool>& bits, std::uint64_t index, bool value) const {
  if (!Contains(index)) return;
  const std::uint64_t at = index - span_.begin;
  if (at >= bits.size()) bits.resize(std::min(span_.end - span_.begin, 2 * at + 64));
  bits[at] = value;
}

void Pass::MarkAsked(std::uint64_t index) {
  Set(asked_, index, true);
  const bool has_begun = asked_until_ > span_.begin;
  if (!has_begun || index <= asked_until_ + reorder_max_) {
    far_ = {};
    MoveTo(index);
    return;
  }
  far_.first = far_.reads == 0 ? index : std::min(far_.first, index);
  if (++far_.reads == kSkipReads) MoveTo(std::exchange(far_, {}).first);
}

// The trainer reads there, and will not come back to what lies far before.
void Pass::MoveTo(std::uint64_t index) {
  if (index >= stops_at_ && index - stops_at_ >= slack_) went_on_ = true;
  if (index < asked_until_) return;
  asked_until_ = index + 1;
  if (index <= low_water_ + reorder_max_) return;
  low_water_ = index - reorder_max_;
  while (!staged_.empty() && staged_.begin()->first < low_water_)
    Unstage(staged_.begin()->first);
  if (frontier_ < low_water_) frontier_ = index;
}

void Pass::MarkUnasked(std::uint64_t index) {
  if (!Test(delivered_, index)) Set(asked_, index, false);
}

void Pass::MarkDelivered(std::uint64_t index) {
  if (!Test(delivered_, index)) ++delivered_count_;
  Set(delivered_, index, true);
  while (low_water_ < span_.end && Test(delivered_, low_water_))
    ++low_water_;
}

std::optional<std::uint64_t> Pass::NextToStage() {
  if (!predicted()) return std::nullopt;
  const std::uint64_t end = std::min<std::uint64_t>(this->end(), order_->ids.size());
  while (frontier_ < end && (asked(frontier_) || staged_.contains(frontier_)))
    ++frontier_;
  if (frontier_ >= end) return std::nullopt;
  return frontier_;
}

HeldSampleRef Pass::Staged(std::uint64_t index) const {
  const auto found = staged_.find(index);
  return found == staged_.end() ? nullptr : found->second.sample;
}

void Pass::Stage(std::uint64_t index, HeldSampleRef sample) {
  Unstage(index);
  const ByteCount arena_bytes = sample->in_arena() ? sample->size() : 0;
  staged_arena_bytes_ += arena_bytes;
  staged_.emplace(index, StagedSample{.sample = std::move(sample), .arena_bytes = arena_bytes});
  PassOver(index);
}

void Pass::PassOver(std::uint64_t index) {
  if (index == frontier_) ++frontier_;
}

void Pass::Unstage(std::uint64_t index) {
  auto node = staged_.extract(index);  // the sample dies after it has left the table
  if (!node.empty()) staged_arena_bytes_ -= node.mapped().arena_bytes;
}

void Pass::UnstageAll() {
  while (!staged_.empty())
    Unstage(staged_.begin()->first);
}

}  // namespace optcache::sidecar
