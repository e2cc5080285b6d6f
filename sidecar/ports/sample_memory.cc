#include "sidecar/ports/sample_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace optcache::sidecar {

Buffer::~Buffer() {
  memory_.Release(*this);
}

SampleMemory::SampleMemory(ArenaPort& arena, ByteCount overflow_bytes,
                           std::function<void()> on_free)
    : arena_(arena),
      overflow_limit_(overflow_bytes),
      asked_limit_(overflow_bytes / 2),
      staged_limit_(overflow_bytes / 2),
      on_free_(std::move(on_free)) {}

BufferRef SampleMemory::AllocateInArena(ByteCount size) {
  const auto slot =
      arena_.Allocate(std::max<ByteCount>(size, 1));  // an empty sample has a place too
  if (!slot) return nullptr;
  BufferRef buffer(new Buffer(*this, Buffer::Pool::kArena, slot->length));
  buffer->slot_ = Slot{.offset = slot->offset, .length = size};
  buffer->bytes_ = arena_.Bytes(*slot).first(size);
  arena_in_use_ += slot->length;
  return buffer;
}

BufferRef SampleMemory::AllocateStaged(ByteCount size) {
  const ByteCount others = std::max(asked_in_use_, asked_limit_);
  const ByteCount limit =
      std::min(staged_limit_, overflow_limit_ - std::min(overflow_limit_, others));
  if (size > limit || staged_in_use_ > limit - size) return nullptr;
  return OnHeap(Buffer::Pool::kStaged, size);
}

bool SampleMemory::Admits(ByteCount bytes) const {
  if (others_ask()) return bytes <= asked_limit_ && asked_in_use_ <= asked_limit_ - bytes;
  return bytes <= AloneNow();
}

BufferRef SampleMemory::AllocateAsked(ByteCount size) {
  return OnHeap(Buffer::Pool::kAsked, size);
}

BufferRef SampleMemory::OnHeap(Buffer::Pool pool, ByteCount size) {
  BufferRef buffer(new Buffer(*this, pool, size));
  buffer->heap_.resize(size);
  buffer->bytes_ = buffer->heap_;
  InUse(pool) += size;
  ++overflow_samples_;
  overflow_bytes_ += size;
  return buffer;
}

void SampleMemory::Release(Buffer& buffer) {
  ByteCount& in_use = InUse(buffer.pool_);
  CHECK(in_use >= buffer.size_);
  in_use -= buffer.size_;
  if (buffer.slot_) arena_.Free({.offset = buffer.slot_->offset, .length = buffer.size_});
  if (on_free_) on_free_();
}

ByteCount& SampleMemory::InUse(Buffer::Pool pool) {
  switch (pool) {
    case Buffer::Pool::kArena:
      return arena_in_use_;
    case Buffer::Pool::kAsked:
      return asked_in_use_;
    case Buffer::Pool::kStaged:
      break;
  }
  return staged_in_use_;
}

void SampleMemory::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kGauge, "optcache_arena_capacity_bytes", {},
          static_cast<double>(arena_.capacity()));
  visitor(MetricKind::kGauge, "optcache_arena_used_bytes", {}, static_cast<double>(arena_in_use_));
  visitor(MetricKind::kGauge, "optcache_overflow_bytes", {{"for", "asked"}},
          static_cast<double>(asked_in_use_));
  visitor(MetricKind::kGauge, "optcache_overflow_bytes", {{"for", "staged"}},
          static_cast<double>(staged_in_use_));
  visitor(MetricKind::kCounter, "optcache_overflow_samples_total", {},
          static_cast<double>(overflow_samples_));
  visitor(MetricKind::kCounter, "optcache_overflow_sample_bytes_total", {},
          static_cast<double>(overflow_bytes_));
}

}  // namespace optcache::sidecar
