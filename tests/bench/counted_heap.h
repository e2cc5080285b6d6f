#pragma once

// Counts what the program allocates, so that memory figures need no guessing. Linking
// counted_heap.cc replaces the global operator new. For programs with one thread.

#include <cstddef>

namespace optcache::bench {

// Bytes in use now.
std::size_t HeapBytes();
// The most that they have been since ResetHeapPeak.
std::size_t HeapPeakBytes();
void ResetHeapPeak();

}  // namespace optcache::bench
