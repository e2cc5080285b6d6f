#pragma once

// Lets long work end early: who asked for it may not want it any more.

#include <cstddef>
#include <stop_token>
#include <utility>

namespace optcache::plan {

// What is returned by work that was stopped means nothing. Cheap to copy.
class StopCheck {
 public:
  StopCheck() = default;  // never
  explicit StopCheck(std::stop_token token) : token_(std::move(token)) {}

  bool Now() const { return token_.stop_requested(); }
  // Asked at each step of a loop; it looks at every 65,536th. A step takes at most some 60 ns.
  bool At(std::size_t step) const { return step % kSteps == 0 && Now(); }

 private:
  static constexpr std::size_t kSteps = 1U << 16U;

  std::stop_token token_;
};

}  // namespace optcache::plan
