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

void MemoryTier::SetBudget(ByteCount capacity, ByteCount reserve, ByteCount disk) {
  capacity_ = capacity;
  reserve_ = reserve;
  disk_ = std::min(disk, capacity);
}

bool MemoryTier::Reserve(ByteCount size) {
  const ByteCount budget = capacity_ + reserve_;
  if (size > budget || used_ > budget - size) return false;
  const ByteCount memory_budget = memory() + reserve_;
  if (size > memory_budget || in_memory() > memory_budget - size) return false;
  used_ += size;
  peak_ = std::max(peak_, used_);
  return true;
}

void MemoryTier::Unreserve(ByteCount size) {
  CHECK(in_memory() >= size);
  used_ -= size;
}

// What an entry took.
void MemoryTier::Release(SampleId id, const Entry& entry) {
  if (!entry.on_disk) return Unreserve(entry.size);
  on_disk_ -= entry.size;
  used_ -= entry.size;
  erased_on_disk_.push_back(id);
}

Entry& MemoryTier::Insert(SampleId id, Entry entry) {
  CHECK(entry.bytes != nullptr);
  Erase(id);
  Entry& inserted = in_memory_entries_[id] = std::move(entry);
  inserted.size = inserted.bytes->size();
  inserted.on_disk = false;
  return inserted;
}

void MemoryTier::MoveToDisk(SampleId id) {
  auto node = in_memory_entries_.extract(id);
  CHECK(!node.empty());
  Entry& entry = node.mapped();
  entry.bytes.reset();
  entry.on_disk = true;
  on_disk_ += entry.size;
  on_disk_entries_.insert(std::move(node));
}

Entry& MemoryTier::InsertOnDisk(SampleId id, ByteCount size, Entry entry) {
  CHECK(Find(id) == nullptr);
  Entry& inserted = on_disk_entries_[id] = std::move(entry);
  inserted.size = size;
  inserted.on_disk = true;
  on_disk_ += size;
  used_ += size;
  return inserted;
}

std::vector<SampleId> MemoryTier::TakeErasedOnDisk() {
  return std::exchange(erased_on_disk_, {});
}

const Entry* MemoryTier::Find(SampleId id) const {
  for (const Entries* entries : {&in_memory_entries_, &on_disk_entries_}) {
    if (const auto it = entries->find(id); it != entries->end()) return &it->second;
  }
  return nullptr;
}

Entry* MemoryTier::Find(SampleId id) {
  return const_cast<Entry*>(std::as_const(*this).Find(id));
}

void MemoryTier::Erase(SampleId id) {
  for (Entries* entries : {&in_memory_entries_, &on_disk_entries_}) {
    const auto it = entries->find(id);
    if (it == entries->end()) continue;
    Release(id, it->second);
    entries->erase(it);
    return;
  }
}

ByteCount MemoryTier::OverheadOf(std::size_t samples) {
  return samples * (kObjectOverhead + kIndexOverhead);
}

}  // namespace optcache::cache
