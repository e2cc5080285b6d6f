#include "cache/memory_tier.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"

namespace optcache::cache {
namespace {

std::atomic<ByteCount> g_live_bytes = 0;

// Control block of the shared pointer, object, and the two malloc headers with their rounding.
constexpr ByteCount kObjectOverhead = 16 + sizeof(SampleBytes) + 32 + 16;
// A node of the hash table: next pointer, key, value, malloc header; and one bucket.
constexpr ByteCount kIndexOverhead = sizeof(std::pair<const SampleId, Entry>) + 8 + 16 + 8;

}  // namespace

// The bytes are not cleared: they are overwritten before anybody reads them.
SampleBytes::SampleBytes(ByteCount size)
    : size_(size), data_(std::make_unique_for_overwrite<std::byte[]>(size)) {
  g_live_bytes += size;
}

SampleBytes::~SampleBytes() {
  g_live_bytes -= size_;
}

ByteCount SampleBytes::LiveBytes() {
  return g_live_bytes;
}

void MemoryTier::SetBudget(ByteCount capacity, ByteCount reserve) {
  capacity_ = capacity;
  reserve_ = reserve;
}

bool MemoryTier::Reserve(ByteCount size) {
  const ByteCount budget = capacity_ + reserve_;
  if (size > budget || used_ > budget - size) return false;
  used_ += size;
  peak_ = std::max(peak_, used_);
  return true;
}

void MemoryTier::Unreserve(ByteCount size) {
  CHECK(used_ >= size);
  used_ -= size;
}

Entry& MemoryTier::Insert(SampleId id, Entry entry) {
  CHECK(entry.bytes != nullptr);
  Entry& slot = entries_[id];
  if (slot.bytes) Unreserve(slot.bytes->size());
  slot = std::move(entry);
  return slot;
}

Entry* MemoryTier::Find(SampleId id) {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

const Entry* MemoryTier::Find(SampleId id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

void MemoryTier::Erase(SampleId id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  Unreserve(it->second.bytes->size());
  entries_.erase(it);
}

ByteCount MemoryTier::OverheadOf(std::size_t samples) {
  return samples * (kObjectOverhead + kIndexOverhead);
}

}  // namespace optcache::cache
