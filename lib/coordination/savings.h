#pragma once

// What the cache has saved of a Dataset (docs/user/what-it-saves.md), as nodes tell it. Plain
// values.

#include <cstdint>
#include <string>

namespace optcache::coordination {

// No number is farther from 0 than this, so that a sum of one and a difference of two fits as well.
inline constexpr std::int64_t kMaxSaved = 1LL << 61;

struct Savings {
  std::int64_t requests = 0;  // below 0: more were sent than the reads need without a cache
  std::int64_t bytes = 0;
  std::uint64_t wait_us = 0;  // how long training processes have waited
  friend bool operator==(const Savings&, const Savings&) = default;
};

struct DatasetSavings {
  std::string dataset;  // "namespace/name"
  Savings saved;
  friend bool operator==(const DatasetSavings&, const DatasetSavings&) = default;
};

// Is each number within kMaxSaved?
bool IsWithinLimits(const Savings& savings);

// Both within limits, and so is the sum: it stops there.
Savings Plus(const Savings& one, const Savings& other);

}  // namespace optcache::coordination
