#pragma once

// Lets long work end early: who asked for it may not want it any more.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

namespace optcache {

// What is returned by work that was stopped means nothing. Cheap to copy.
class StopCheck {
 public:
  // Work looks at least once in this many steps. A step takes at most some 300 ns.
  static constexpr std::size_t kSteps = 1U << 14U;

  StopCheck() = default;  // never
  explicit StopCheck(std::stop_token token)
      : stops_([token = std::move(token)] { return token.stop_requested(); }) {}
  // Called at each look, on the thread that works; once it has said true, always.
  explicit StopCheck(std::function<bool()> stops) : stops_(std::move(stops)) {}

  bool Now() const { return stops_ && stops_(); }
  // Asked at each step of a loop; it looks at every kSteps-th.
  bool At(std::size_t step) const { return step % kSteps == 0 && Now(); }

 private:
  std::function<bool()> stops_;
};

// Makes `values` `count` times `value`; of fewer once `stop` says so.
template <typename T>
void Fill(std::vector<T>& values, std::size_t count, const std::type_identity_t<T>& value,
          const StopCheck& stop) {
  values.clear();
  values.reserve(count);
  while (values.size() < count && !stop.Now())
    values.resize(std::min(count, values.size() + StopCheck::kSteps), value);
}

}  // namespace optcache
