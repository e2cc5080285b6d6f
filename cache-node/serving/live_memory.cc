#include "cache-node/serving/live_memory.h"

namespace optcache::node {
namespace {

constexpr auto kHeldUpTooLong = std::chrono::seconds(5);

}  // namespace

bool LiveMemory::Admits(ByteCount live, ByteCount size) {
  if (live <= limit() && size <= limit() - live) return true;
  ++refused_;
  return false;
}

bool LiveMemory::IsHeldUp(ByteCount live, ByteCount charged, MonotonicTime now) {
  if (live <= charged + (limit() - memory_) / 2) {
    held_up_since_.reset();
    return false;
  }
  if (!held_up_since_) held_up_since_ = now;
  if (now - *held_up_since_ < kHeldUpTooLong) return false;
  held_up_since_ = now;
  return true;
}

}  // namespace optcache::node
