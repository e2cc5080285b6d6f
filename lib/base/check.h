#pragma once

// CHECK(condition): what only our own bug can break. On in release builds too. Never for input from
// a wire, a file, a user or a cluster.

namespace optcache::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace optcache::internal

#define CHECK(condition) \
  ((condition) ? (void)0 : ::optcache::internal::CheckFailed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define DCHECK(condition) ((void)sizeof(condition))
#else
#define DCHECK(condition) CHECK(condition)
#endif
