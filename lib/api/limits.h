#pragma once

// Limits of texts and lists, as the CRDs have them.

#include <cstddef>

namespace optcache::api {

inline constexpr std::size_t kMaxName = 253;
inline constexpr std::size_t kMaxResourceName = 63;  // of what becomes the value of a label
inline constexpr std::size_t kMaxUrl = 2048;
inline constexpr std::size_t kMaxPath = 1024;
inline constexpr std::size_t kMaxQuantity = 32;
inline constexpr std::size_t kMaxLabel = 63;
inline constexpr std::size_t kMaxRegion = 64;
inline constexpr std::size_t kMaxJobsOfPlan = 64;  // that a CachePlan names

}  // namespace optcache::api
