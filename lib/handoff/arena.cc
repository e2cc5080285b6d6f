#include "handoff/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "handoff/memory_file.h"

namespace optcache::handoff {
namespace {

constexpr ByteCount RoundDown(ByteCount length) {
  return length / kSlotAlignment * kSlotAlignment;
}

// Not used on lengths within kSlotAlignment of 2^64.
constexpr ByteCount RoundUp(ByteCount length) {
  return RoundDown(std::max<ByteCount>(length, 1) + kSlotAlignment - 1);
}

constexpr ByteCount kMinArenaBytes = 4096;

}  // namespace

ArenaAllocator::ArenaAllocator(ByteCount capacity) : capacity_(RoundDown(capacity)) {
  if (capacity_ > 0) AddFree(0, capacity_);
}

std::optional<Slot> ArenaAllocator::Allocate(ByteCount length) {
  if (length > capacity_) return std::nullopt;
  const ByteCount rounded = RoundUp(length);
  const auto piece = free_by_length_.lower_bound({rounded, 0});
  if (piece == free_by_length_.end()) return std::nullopt;

  const auto [piece_length, offset] = *piece;
  TakeFree(offset, piece_length);
  if (piece_length > rounded) AddFree(offset + rounded, piece_length - rounded);
  used_.emplace(offset, rounded);
  in_use_ += rounded;
  return Slot{.offset = offset, .length = length};
}

void ArenaAllocator::Free(const Slot& slot) {
  const auto used = used_.find(slot.offset);
  CHECK(used != used_.end() && used->second == RoundUp(slot.length));
  ByteCount offset = slot.offset;
  ByteCount length = used->second;
  used_.erase(used);
  in_use_ -= length;

  const auto after = free_by_offset_.lower_bound(offset);
  const ByteCount after_length =
      after != free_by_offset_.end() && after->first == offset + length ? after->second : 0;
  ByteCount before_length = 0;
  if (after != free_by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) before_length = before->second;
  }
  if (after_length > 0) TakeFree(offset + length, after_length);
  if (before_length > 0) TakeFree(offset - before_length, before_length);
  AddFree(offset - before_length, before_length + length + after_length);
}

ByteCount ArenaAllocator::LongestFree() const {
  return free_by_length_.empty() ? 0 : free_by_length_.rbegin()->first;
}

void ArenaAllocator::AddFree(ByteCount offset, ByteCount length) {
  free_by_offset_.emplace(offset, length);
  free_by_length_.emplace(length, offset);
}

void ArenaAllocator::TakeFree(ByteCount offset, ByteCount length) {
  free_by_offset_.erase(offset);
  free_by_length_.erase({length, offset});
}

Result<Arena> Arena::Create(ByteCount size) {
  if (size < kMinArenaBytes) {
    return Error(Code::kInvalidArgument, "an arena of " + FormatBytes(size) +
                                             " holds nothing: give it at least a few batches");
  }
  ASSIGN_OR_RETURN(UniqueFd fd, MakeMemoryFile("optcache-arena", size));
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return Error(ErrnoStatus(errno, "map an arena of " + FormatBytes(size)));
  Arena arena(std::move(fd), static_cast<std::byte*>(base), size);
  // Our own mapping was made before and stays writable.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (::fcntl(arena.fd(), F_ADD_SEALS, kSeals) != 0) {
    return Error(ErrnoStatus(errno, "seal the arena (needs Linux 5.1)"));
  }
  return arena;
}

Arena::Arena(UniqueFd fd, std::byte* base, ByteCount size)
    : fd_(std::move(fd)), base_(base), size_(size), allocator_(size) {}

Arena::Arena(Arena&& other) noexcept
    : fd_(std::move(other.fd_)),
      base_(std::exchange(other.base_, nullptr)),
      size_(other.size_),
      allocator_(std::move(other.allocator_)) {}

Arena::~Arena() {
  if (base_ != nullptr) ::munmap(base_, size_);
}

}  // namespace optcache::handoff
