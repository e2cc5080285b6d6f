#include "coordination/savings.h"

#include <algorithm>

namespace optcache::coordination {
namespace {

std::int64_t SumWithinLimits(std::int64_t one, std::int64_t other) {
  return std::clamp(one + other, -kMaxSaved, kMaxSaved);
}

}  // namespace

bool IsWithinLimits(const Savings& savings) {
  const auto within = [](std::int64_t number) {
    return number >= -kMaxSaved && number <= kMaxSaved;
  };
  return within(savings.requests) && within(savings.bytes) &&
         savings.wait_us <= static_cast<std::uint64_t>(kMaxSaved);
}

Savings Plus(const Savings& one, const Savings& other) {
  return {.requests = SumWithinLimits(one.requests, other.requests),
          .bytes = SumWithinLimits(one.bytes, other.bytes),
          .wait_us = std::min(one.wait_us + other.wait_us, static_cast<std::uint64_t>(kMaxSaved))};
}

}  // namespace optcache::coordination
