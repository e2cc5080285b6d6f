#pragma once

// For lines that strangers can cause as often as they like: one a second, which says how many there
// were that it stands for.
//
//   if (const auto not_logged = limit_.Pass(clock_.Now()))
//     Log(LogLevel::kWarning, "refused", {{"why", why}, {"not_logged", *not_logged}});

#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace optcache {

// Not thread-safe: a value with one owner.
class LogLimit {
 public:
  // How many were held back since the last line; nothing: this one is held back, too.
  std::optional<std::uint64_t> Pass(MonotonicTime now) {
    if (now < quiet_until_) {
      ++held_back_;
      return std::nullopt;
    }
    quiet_until_ = now + std::chrono::seconds(1);
    return std::exchange(held_back_, 0);
  }

 private:
  MonotonicTime quiet_until_{};
  std::uint64_t held_back_ = 0;
};

}  // namespace optcache
