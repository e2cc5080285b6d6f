#include "sampler/mt19937.h"

#include <algorithm>

namespace optcache::sampler {
namespace {

constexpr std::size_t kShift = 397;
constexpr std::size_t kStepsOfAdvance = 64;  // of a StopCheck, in time

// One step of the recurrence: the top bit of `upper`, the other 31 of `lower`, and the word 397 on.
std::uint32_t Twist(std::uint32_t upper, std::uint32_t lower, std::uint32_t far) {
  const std::uint32_t mixed = (upper & 0x80000000U) | (lower & 0x7fffffffU);
  return far ^ (mixed >> 1U) ^ ((0U - (lower & 1U)) & 0x9908b0dfU);
}

std::uint32_t Temper(std::uint32_t word) {
  word ^= word >> 11U;
  word ^= (word << 7U) & 0x9d2c5680U;
  word ^= (word << 15U) & 0xefc60000U;
  return word ^ (word >> 18U);
}

}  // namespace

Mt19937::Mt19937(std::uint64_t seed) : state_{static_cast<std::uint32_t>(seed)} {
  for (std::uint32_t i = 1; i < kWords; ++i) {
    const std::uint32_t last = state_[i - 1];
    state_[i] = 1812433253U * (last ^ (last >> 30U)) + i;
  }
}

void Mt19937::Discard(std::uint64_t count, const StopCheck& stop) {
  const std::uint64_t left = kWords - index_;
  if (count <= left) {
    index_ += static_cast<std::size_t>(count);
    return;
  }
  count -= left;
  for (std::size_t i = 0; count > kWords && !stop.At(i * kStepsOfAdvance); count -= kWords, ++i)
    Advance();
  count = std::min<std::uint64_t>(count, kWords);
  Refill();
  index_ = static_cast<std::size_t>(count);
}

void Mt19937::Advance() {
  constexpr std::size_t kRest = kWords - kShift;
  for (std::size_t i = 0; i < kRest; ++i) {
    state_[i] = Twist(state_[i], state_[i + 1], state_[i + kShift]);
  }
  for (std::size_t i = kRest; i < kWords - 1; ++i) {
    state_[i] = Twist(state_[i], state_[i + 1], state_[i - kRest]);
  }
  state_[kWords - 1] = Twist(state_[kWords - 1], state_[0], state_[kShift - 1]);
}

void Mt19937::Refill() {
  Advance();
  for (std::size_t i = 0; i < kWords; ++i)
    words_[i] = Temper(state_[i]);
  index_ = 0;
}

}  // namespace optcache::sampler
