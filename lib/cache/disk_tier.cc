// Knows which segment has which sample, and gives back the room of samples that go.
//
// The idea: a segment is written once and never changed. A sample that goes only marks its record
// as dead. Neighbouring dead records are one run, and the whole blocks inside a run are returned to
// the file system as a hole. When the last live record has gone, the file is removed.
//
//   records   | a |  b   |  c   |   d   | e |      b, c and d are dead: one run
//   blocks    |     |     |     |     |     |
//                   |   punched   |                the blocks that a and e share with them stay
//
// Invariants: `index_` has one place for each sample, and `live` is the number of places that point
// to the segment. `taken` is what the segment has of the disk's budget: it shrinks when the file
// system has returned a hole, and goes when the file is removed. A segment that is read is not
// removed before the read ends. Calls of the disk end on the owner's thread, when everything may
// have changed: a callback has the segment's number and no reference into the tier, and is not
// called once the tier has gone.

#include "cache/disk_tier.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace optcache::cache {
namespace {

constexpr std::size_t kMaxSegmentsWriting = 2;
// A hole is worth a call of the file system from here on; less only where room is wanted.
constexpr ByteCount kHoleBytes = 64_KiB;

}  // namespace

void DiskTier::Adopt(FoundSegment found) {
  disk_.TakeFound(found.name.number, found.file_bytes);
  if (!found.status.ok()) return disk_.OnUnread(found.file_bytes);
  Held held;
  held.content = std::move(found.segment);
  held.taken = found.file_bytes;
  held.end = held.content.extents.empty() ? 0 : RoundUpToBlock(held.content.extents.back().end);
  for (const Extent& hole : found.holes)
    held.holes[hole.begin] = hole.end;
  Hold(found.name.number, std::move(held));
}

// Its present samples are here from now on, instead of older ones.
void DiskTier::Hold(std::uint64_t number, Held held) {
  const auto segment = segments_.emplace(number, std::move(held)).first;
  Segment& content = segment->second.content;
  segment->second.live = content.records.size();
  for (std::uint32_t i = 0; i < content.records.size(); ++i) {
    const SegmentRecord& record = content.records[i];
    if (!content.present[i]) {
      MarkDead(segment, i);
      continue;
    }
    Erase(record.id);
    index_[record.id] = {.segment = number, .record = i};
    payload_bytes_ += record.length;
  }
  RemoveIfEmpty(segment);
}

std::vector<SegmentRecord> DiskTier::Samples() const {
  std::vector<SegmentRecord> samples;
  samples.reserve(index_.size());
  for (const auto& [_, place] : index_)
    samples.push_back(segments_.at(place.segment).content.records[place.record]);
  return samples;
}

Status DiskTier::Write(std::vector<NewSample> samples, MonotonicTime now, Done done) {
  CHECK(!samples.empty() && samples.size() <= kSegmentRecordsMax);
  if (!disk_.may_write(now)) return {Code::kUnavailable, "nothing is written to this disk now"};
  if (busy()) return {Code::kUnavailable, "segments are being written"};
  Held held;
  SegmentContent content;
  for (NewSample& sample : samples) {
    CHECK(sample.bytes->size() == sample.record.length);
    content.records.push_back(sample.record);
    content.samples.push_back(std::move(sample.bytes));
  }
  held.content.records = content.records;
  const auto count = static_cast<std::uint32_t>(content.records.size());
  held.content.extents = SegmentExtents(content.records, count);
  held.content.present.assign(count, true);
  held.end = held.taken = SegmentFileBytes(content.records);
  if (!disk_.Take(held.taken)) return {Code::kResourceExhausted, "the disk's budget is used"};
  content.name = NameOf(disk_.NextNumber());
  ++writing_;
  ++under_way_;
  const std::uint64_t number = content.name.number;
  io_.Write(std::move(content),
            guard_.Wrap([this, number, now, done = std::move(done),
                         held = std::make_shared<Held>(std::move(held))](const Status& status) {
              OnWritten(number, std::move(*held), status, done, now);
            }));
  return OkStatus();
}

bool DiskTier::busy() const {
  return writing_ >= kMaxSegmentsWriting;
}

void DiskTier::OnWritten(std::uint64_t number, Held held, const Status& status, const Done& done,
                         MonotonicTime begun) {
  --writing_;
  --under_way_;
  ByteCount payload = 0;
  for (const SegmentRecord& record : held.content.records)
    payload += record.length;
  disk_.OnWritten(status, payload, held.taken, begun);
  if (status.ok()) {
    Hold(number, std::move(held));
  } else {
    disk_.GiveBack(held.taken);
  }
  done(status);
}

Status DiskTier::Read(SampleId id, MonotonicTime deadline, Got got) {
  const auto found = index_.find(id);
  if (found == index_.end() || disk_.out_of_use()) {
    return {Code::kNotFound, "the disk does not have this sample"};
  }
  const Place place = found->second;
  Held& held = segments_.at(place.segment);
  ++held.reading;
  ++under_way_;
  io_.Read({.name = NameOf(place.segment),
            .extent = held.content.extents[place.record],
            .crc = held.content.records[place.record].crc,
            .deadline = deadline},
           guard_.Wrap([this, id, place, got = std::move(got)](Result<SampleRef> result) {
             OnRead(id, place, result);
             got(std::move(result));
           }));
  return OkStatus();
}

void DiskTier::OnRead(SampleId id, const Place& place, const Result<SampleRef>& result) {
  --under_way_;
  disk_.OnRead(internal::StatusOf(result), result ? (*result)->size() : 0);
  const auto segment = segments_.find(place.segment);
  --segment->second.reading;
  const bool lost = !result && result.error().code() != Code::kUnavailable &&
                    result.error().code() != Code::kDeadlineExceeded;
  const auto found = index_.find(id);
  const bool same = found != index_.end() && found->second.segment == place.segment;
  if (lost && same) return Erase(id);
  RemoveIfEmpty(segment);
}

void DiskTier::Erase(SampleId id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return;
  const Place place = found->second;
  index_.erase(found);
  const auto segment = segments_.find(place.segment);
  payload_bytes_ -= segment->second.content.records[place.record].length;
  MarkDead(segment, place.record);
  RemoveIfEmpty(segment);
}

void DiskTier::EraseAll() {
  std::vector<SampleId> ids;
  ids.reserve(index_.size());
  for (const auto& [id, _] : index_)
    ids.push_back(id);
  for (const SampleId id : ids)
    Erase(id);
}

// Joins the runs on both sides.
void DiskTier::MarkDead(Segments::iterator segment, std::uint32_t record) {
  Held& held = segment->second;
  --held.live;
  std::uint32_t first = record;
  std::uint32_t last = record + 1;
  auto next = held.dead.lower_bound(record);
  if (next != held.dead.end() && next->first == last) {
    last = next->second;
    next = held.dead.erase(next);
  }
  if (next != held.dead.begin()) {
    if (const auto before = std::prev(next); before->second == first) {
      first = before->first;
      held.dead.erase(before);
    }
  }
  held.dead[first] = last;
  if (held.live > 0) ReturnBlocks(segment->first, held, BlocksOf(held, first, last), kHoleBytes);
}

// Whole blocks that only these records lie in.
Extent DiskTier::BlocksOf(const Held& held, std::uint32_t first, std::uint32_t last) {
  const auto& extents = held.content.extents;
  const ByteCount begin = RoundUpToBlock(extents[first].begin);
  const ByteCount end = last == extents.size() ? held.end : RoundDownToBlock(extents[last - 1].end);
  return {.begin = begin, .end = std::max(begin, end)};
}

void DiskTier::ReturnBlocks(std::uint64_t number, Held& held, const Extent& blocks,
                            ByteCount least) {
  if (!can_return_) return;
  // What overlaps it has been given back before, as far as it does.
  auto hole = held.holes.upper_bound(blocks.begin);
  if (hole != held.holes.begin() && std::prev(hole)->second > blocks.begin) --hole;
  const auto first = hole;
  Extent joined = blocks;
  ByteCount old = 0;
  for (; hole != held.holes.end() && hole->first < blocks.end; ++hole) {
    old += std::min(hole->second, blocks.end) - std::max(hole->first, blocks.begin);
    joined = {.begin = std::min(joined.begin, hole->first),
              .end = std::max(joined.end, hole->second)};
  }
  if (blocks.size() - old < std::max<ByteCount>(least, 1)) return;
  held.holes.erase(first, hole);
  held.holes[joined.begin] = joined.end;
  ++under_way_;
  io_.Punch(NameOf(number), blocks,
            guard_.Wrap([this, number, bytes = blocks.size() - old](const Status& status) {
              --under_way_;
              if (status.code() == Code::kInvalidArgument) can_return_ = false;
              const auto segment = segments_.find(number);
              if (!status.ok() || segment == segments_.end()) return;  // removed meanwhile
              const ByteCount returned = std::min(bytes, segment->second.taken);
              segment->second.taken -= returned;
              disk_.GiveBack(returned);
              disk_.OnReturned(returned);
            }));
}

void DiskTier::RemoveIfEmpty(Segments::iterator segment) {
  if (segment->second.live > 0 || segment->second.reading > 0) return;
  const ByteCount taken = segment->second.taken;
  const SegmentName name = NameOf(segment->first);
  segments_.erase(segment);
  ++under_way_;
  io_.Remove(name, guard_.Wrap([this, taken](const Status& status) {
    --under_way_;
    disk_.OnChanged(status);
    if (status.ok()) disk_.GiveBack(taken);
  }));
}

void DiskTier::Tick() {
  if (room_seen_ == disk_.room_wanted()) return;
  room_seen_ = disk_.room_wanted();
  for (auto& [number, held] : segments_) {
    for (const auto& [first, last] : held.dead)
      ReturnBlocks(number, held, BlocksOf(held, first, last), kSegmentBlock);
  }
}

}  // namespace optcache::cache
