#include "bench/counted_heap.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t live_bytes = 0;
std::size_t peak_bytes = 0;

}  // namespace

void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) std::abort();
  live_bytes += malloc_usable_size(block);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return block;
}
void operator delete(void* block) noexcept {
  live_bytes -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t /*size*/) noexcept {
  operator delete(block);
}

namespace optcache::bench {

std::size_t HeapBytes() {
  return live_bytes;
}
std::size_t HeapPeakBytes() {
  return peak_bytes;
}
void ResetHeapPeak() {
  peak_bytes = live_bytes;
}

}  // namespace optcache::bench
