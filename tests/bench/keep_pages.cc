// Preloaded into a process, it takes no page out of the page cache: the peer of page_cache.py.

#include <fcntl.h>

extern "C" int posix_fadvise(int /*fd*/, off_t /*offset*/, off_t /*length*/,
                             int /*advice*/) noexcept {
  return 0;
}

extern "C" int posix_fadvise64(int /*fd*/, off64_t /*offset*/, off64_t /*length*/,
                               int /*advice*/) noexcept {
  return 0;
}
