#pragma once

// Warmups as metrics: how each stands, and how far it is.

#include <cstddef>

#include "base/counters.h"
#include "kube/object_cache.h"

namespace optcache::manager {

inline constexpr std::size_t kMaxWarmupsShown = 1024;

// Of the first 1,024 Warmups by name.
void VisitWarmups(const kube::ObjectCache& warmups, const CounterVisitor& visitor);

}  // namespace optcache::manager
