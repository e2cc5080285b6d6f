// Samples on the node's disk: reading them for those who ask, and sending there what memory has no
// room for.

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "cache-node/serving/dataset_cache.h"
#include "cache/tiering.h"

namespace optcache::node {

using wire::GetMode;

namespace {

constexpr Duration kSpillAgain = std::chrono::milliseconds(50);
constexpr Duration kSpillWhenFull = std::chrono::seconds(1);
constexpr Duration kRoomWanted = std::chrono::seconds(2);
constexpr std::size_t kMaxAwaitRoom = 65'536;
// A read that has awaited room in vain does not do so again before that.
constexpr Duration kAwaitRoomAgain = std::chrono::seconds(30);
// What is being read from the disk and not sent on yet, beside the memory's budget.
constexpr std::size_t kMaxDiskReads = 256;
constexpr ByteCount kMaxDiskReadBytes = 16_MiB;

}  // namespace

void DatasetCache::UseDisk(std::shared_ptr<cache::DiskTier> tier, cache::DiskState& disk,
                           MonotonicTime now) {
  disk_ = std::move(tier);
  disk_state_ = &disk;
  last_tick_ = now;
  push_queue_.LoadBy([this](SampleId id) {
    const cache::Entry* entry = tier_.Find(id);
    DiskRead* const reading = entry != nullptr ? BeginDiskRead(id, *entry, last_tick_) : nullptr;
    if (reading != nullptr) reading->to_move = true;
    return reading != nullptr;
  });
  for (const cache::SegmentRecord& record : disk_->Samples()) {
    const bool known = record.id < config_.sizes.count() && record.length == SizeOf(record.id);
    if (known && tier_.Find(record.id) == nullptr) {
      retention_manager_.Adopt(record);
    } else {
      disk_->Erase(record.id);
    }
  }
}

// --- Reading ------------------------------------------------------------------------------------

// Null: not now.
DatasetCache::DiskRead* DatasetCache::BeginDiskRead(SampleId id, const cache::Entry& entry,
                                                    MonotonicTime now) {
  if (const auto found = disk_reads_.find(id); found != disk_reads_.end()) return &found->second;
  if (disk_reads_.size() >= kMaxDiskReads) return nullptr;
  if (*disk_read_bytes_ > 0 && *disk_read_bytes_ + entry.size > kMaxDiskReadBytes) return nullptr;
  *disk_read_bytes_ += entry.size;
  const RelayShare share(disk_read_bytes_.get(), [count = disk_read_bytes_, size = entry.size](
                                                     const void*) { *count -= size; });
  const MonotonicTime deadline = now + deadlines_.disk;
  const Status begun =
      disk_->Read(id, deadline, guard_.Wrap([this, id, share](Result<cache::SampleRef> result) {
        OnDiskRead(id, std::move(result), share, last_tick_);
      }));
  if (!begun.ok()) return nullptr;
  DiskRead& reading = disk_reads_[id];
  reading.deadline = deadline;
  return &reading;
}

void DatasetCache::ReadFromDisk(Read read, const cache::Entry& entry, MonotonicTime now) {
  const SampleId id = read.item.id;
  if (DiskRead* const reading = BeginDiskRead(id, entry, now); reading != nullptr) {
    reading->reads.push_back(std::move(read));
  } else if (disk_->Contains(id) && !disk_state_->out_of_use()) {
    AnswerLater(std::move(read), now);
  } else {
    retention_manager_.LoseOnDisk(id);
    std::vector<Read> reads;
    reads.push_back(std::move(read));
    AnswerWithoutDisk(std::move(reads), now);
  }
}

void DatasetCache::OnDiskRead(SampleId id, const Result<cache::SampleRef>& result,
                              const RelayShare& share, MonotonicTime now) {
  auto node = disk_reads_.extract(id);
  if (node.empty()) return;
  DiskRead waiting = std::move(node.mapped());
  if (result) {
    // The share is given back once the bytes are sent on.
    using Loaded = std::pair<cache::SampleRef, RelayShare>;
    const cache::SampleRef bytes(std::make_shared<const Loaded>(*result, share), result->get());
    return AnswerFromDisk(waiting, id, bytes, now);
  }
  const Code code = result.error().code();
  if (code != Code::kUnavailable && code != Code::kDeadlineExceeded)
    retention_manager_.LoseOnDisk(id);
  if (waiting.to_move) push_queue_.Provide(id, nullptr, now);
  AnswerWithoutDisk(std::move(waiting.reads), now);
}

// Meanwhile it lies in memory, too: a move of it then has its bytes.
void DatasetCache::AnswerFromDisk(DiskRead& waiting, SampleId id, const cache::SampleRef& bytes,
                                  MonotonicTime now) {
  if (waiting.to_move) push_queue_.Provide(id, bytes, now);
  std::vector<Read> too_late;  // it went with one of the reads before
  for (Read& read : waiting.reads) {
    cache::Entry* entry = tier_.Find(id);
    if (entry == nullptr) {
      too_late.push_back(std::move(read));
      continue;
    }
    if (!entry->bytes) entry->bytes = bytes;
    if (read.mode == GetMode::kPeer) {
      AnswerPeer(read, *entry, now);
    } else {
      AnswerHere(read, now);
    }
  }
  if (cache::Entry* entry = tier_.Find(id); entry != nullptr && entry->on_disk) {
    entry->bytes.reset();
  }
  AnswerWithoutDisk(std::move(too_late), now);
}

// What is still there is left to the store all the same: the disk has too much to do.
void DatasetCache::AnswerWithoutDisk(std::vector<Read> reads, MonotonicTime now) {
  std::map<wire::MemberId, std::vector<Read>> lookups;
  for (Read& read : reads) {
    if (read.mode == GetMode::kPeer) {
      AnswerAbsent(read);
    } else if (retention_manager_.Readable(read.item.id, read.borrower) != nullptr) {
      AnswerMiss(read, 0, false);
    } else {
      Serve(std::move(read), lookups, now);
    }
  }
  AskHomes(std::move(lookups), now);
}

// The calls go on; later reads wait for them, too, for as long as for a new one.
void DatasetCache::GiveUpLateReads(MonotonicTime now) {
  std::vector<Read> late;
  for (auto& [_, reading] : disk_reads_) {
    if (now < reading.deadline) continue;
    if (!std::exchange(reading.late, true)) disk_state_->OnSlowRead(now);
    reading.deadline = now + deadlines_.disk;
    std::ranges::move(std::exchange(reading.reads, {}), std::back_inserter(late));
  }
  AnswerWithoutDisk(std::move(late), now);
}

// --- Writing ------------------------------------------------------------------------------------

// The reader would read it from the store and put it here, where memory has no room yet. It asks
// again, but not for long: the store may be faster than the disk.
bool DatasetCache::AwaitsRoom(const Read& read, MonotonicTime now) {
  if (!disk_ || read.mode != GetMode::kStage || read.borrower != kNoBorrower) return false;
  const ByteCount size = SizeOf(read.item.id);
  const bool never = size > tier_.memory() + tier_.reserve() || !disk_state_->may_write(now);
  if (never || HasRoomInMemory(size)) return false;
  if (!retention_manager_.KeepsFromStore(read.key(), size)) return false;
  if (await_room_.size() >= kMaxAwaitRoom) return false;
  const MonotonicTime until =
      await_room_.try_emplace(read.item.id, now + deadlines_.room).first->second;
  if (now >= until) return false;
  WantRoom(size);
  return true;
}

// Beside what is about to come. Small ones do not take the room that is made for a larger one.
bool DatasetCache::HasRoomInMemory(ByteCount size) const {
  const bool for_larger = last_tick_ < wanted_until_ && wanted_room_ > size;
  return !disk_ || tier_.FitsMemory(size, granted_room_ + (for_larger ? wanted_room_ : 0),
                                    retention_manager_.spare_bytes_in_memory());
}

void DatasetCache::ForgetAwaitedRoom(MonotonicTime now) {
  std::erase_if(await_room_,
                [now](const auto& read) { return now >= read.second + kAwaitRoomAgain; });
}

void DatasetCache::WantRoom(ByteCount size) {
  if (size > tier_.memory() + tier_.reserve()) return;  // there will be none
  if (last_tick_ < wanted_until_ && size < wanted_room_) return;
  wanted_room_ = size;
  wanted_until_ = last_tick_ + kRoomWanted;
}

// It lies in memory alone, and nothing is done with it at the moment.
bool DatasetCache::MaySpill(SampleId id, const cache::Entry& entry) const {
  const bool outgoing = entry.residence == cache::Residence::kOutgoing;
  const bool spare = entry.residence == cache::Residence::kSpare;
  return !entry.on_disk && !entry.spilling && !spare &&
         (!outgoing || push_queue_.WaitsInMemory(id));
}

// What goes next, the soonest next use first. What is on its way to another node goes only where
// there is nothing else: nodes whose memory is full of that would take nothing of one another.
std::vector<SampleId> DatasetCache::ChooseSpill() const {
  std::vector<cache::SpillCandidate> stays;
  std::vector<cache::SpillCandidate> goes;
  for (const auto& [id, entry] : tier_.in_memory_entries()) {
    if (!MaySpill(id, entry)) continue;
    auto& candidates = entry.residence == cache::Residence::kOutgoing ? goes : stays;
    candidates.push_back(
        {.id = id, .size = entry.size, .next_use = uses_.NextUse(id), .last_use = entry.last_use});
  }
  std::vector<cache::SpillCandidate>& candidates = stays.empty() ? goes : stays;
  const ByteCount batch = cache::SpillBatchBytes(tier_.memory());
  return cache::ChooseSpill(std::move(candidates),
                            {.bytes = batch, .room = tier_.disk(), .count = candidates.size()});
}

// One segment at a time of what was chosen, from its end: that is used last.
void DatasetCache::Spill(MonotonicTime now) {
  if (now < next_spill_ || disk_->busy() || !disk_state_->may_write(now)) return;
  if (now >= wanted_until_) wanted_room_ = 0;
  const ByteCount goes =
      std::min(tier_.in_memory(), spilling_bytes_ + retention_manager_.spare_bytes_in_memory());
  const ByteCount wanted =
      cache::SpillBytes(tier_.in_memory() - goes, tier_.memory(), granted_room_ + wanted_room_);
  if (wanted == 0) return;
  retention_manager_.MakeRoomOnDisk(spilling_bytes_ + wanted);
  if (to_spill_.empty()) to_spill_ = ChooseSpill();
  ByteCount room = tier_.disk() - std::min(tier_.disk(), tier_.on_disk() + spilling_bytes_);
  ByteCount bytes = 0;
  std::vector<cache::DiskTier::NewSample> samples;
  std::vector<std::pair<SampleId, cache::SampleRef>> sent;
  while (!to_spill_.empty() && bytes < wanted && samples.size() < cache::kSegmentRecordsMax) {
    const SampleId id = to_spill_.back();
    const cache::Entry* entry = tier_.Find(id);
    if (entry != nullptr && MaySpill(id, *entry)) {
      if (entry->size > room) break;
      room -= entry->size;
      bytes += entry->size;
      samples.push_back({.record = {.id = id,
                                    .length = static_cast<std::uint32_t>(entry->size),
                                    .crc = entry->crc,
                                    .kept_after = entry->kept_after},
                         .bytes = entry->bytes});
      sent.emplace_back(id, entry->bytes);
    }
    to_spill_.pop_back();
  }
  std::ranges::reverse(samples);
  next_spill_ = now + kSpillAgain;
  if (samples.empty()) return;
  const Status begun = disk_->Write(
      std::move(samples), now,
      [this, sent, life = guard_.token(), disk = std::weak_ptr(disk_)](const Status& status) {
        if (!life.expired()) return OnSpilled(sent, status.ok());
        const auto still = disk.lock();
        if (!still || !status.ok()) return;
        for (const auto& [id, _] : sent)
          still->Erase(id);  // nobody knows of them any more
      });
  if (!begun.ok()) {
    next_spill_ = now + kSpillWhenFull;
    to_spill_.clear();
    return;
  }
  for (const auto& [id, _] : sent)
    tier_.Find(id)->spilling = true;
  spilling_bytes_ += bytes;
  next_spill_ = now;
}

void DatasetCache::OnSpilled(const std::vector<std::pair<SampleId, cache::SampleRef>>& samples,
                             bool written) {
  for (const auto& [id, bytes] : samples) {
    spilling_bytes_ -= bytes->size();
    cache::Entry* entry = tier_.Find(id);
    const bool same = entry != nullptr && entry->bytes == bytes && !entry->on_disk;
    if (same) entry->spilling = false;
    const bool spare = same && entry->residence == cache::Residence::kSpare;
    if (same && written && !spare) {
      tier_.MoveToDisk(id);
      push_queue_.LiesOnDisk(id);
    } else if (written) {
      disk_->Erase(id);  // it went, or came again, meanwhile
    }
  }
}

// --- The disk's own course ----------------------------------------------------------------------

void DatasetCache::TickDisk(MonotonicTime now) {
  last_tick_ = now;
  if (!disk_) return;
  for (const SampleId id : tier_.TakeErasedOnDisk())
    disk_->Erase(id);
  GiveUpLateReads(now);
  if (disk_state_->out_of_use() && tier_.samples_on_disk() > 0) {
    Log(LogLevel::kError, "the disk is out of use: what lay there is read from the store again",
        {{"samples", tier_.samples_on_disk()}});
    LeaveDisk();
  }
  Spill(now);
}

void DatasetCache::LeaveDisk() {
  if (tier_.samples_on_disk() == 0) return;
  std::vector<SampleId> ids;
  for (const auto& [id, _] : tier_.on_disk_entries())
    ids.push_back(id);
  for (const SampleId id : ids)
    retention_manager_.LoseOnDisk(id);
}

}  // namespace optcache::node
