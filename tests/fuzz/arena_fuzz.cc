// Any sequence of allocations and frees: slots lie apart within the arena, the best piece is given,
// and what is free is what no slot has. The reference looks at every unit of kSlotAlignment bytes.
//
// Two bytes an operation: with the first even, allocate so many bytes times 16; else free one of
// the slots that there are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "handoff/arena.h"

using namespace optcache;           // NOLINT(google-build-using-namespace)
using namespace optcache::handoff;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kUnits = 64;

class Reference {
 public:
  struct Run {
    std::size_t begin = 0;
    std::size_t length = 0;
  };

  // The shortest run of free units that is long enough, the first of such.
  std::optional<Run> BestFit(std::size_t units) const {
    std::optional<Run> best;
    for (const Run& run : FreeRuns()) {
      if (run.length >= units && (!best || run.length < best->length)) best = run;
    }
    return best;
  }
  std::size_t LongestFree() const {
    std::size_t longest = 0;
    for (const Run& run : FreeRuns())
      longest = std::max(longest, run.length);
    return longest;
  }
  void Set(std::size_t begin, std::size_t length, bool used) {
    for (std::size_t unit = begin; unit < begin + length; ++unit) {
      CHECK(used_[unit] != used);
      used_[unit] = used;
    }
  }
  std::size_t in_use() const { return static_cast<std::size_t>(std::ranges::count(used_, true)); }

 private:
  std::vector<Run> FreeRuns() const {
    std::vector<Run> runs;
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      if (used_[unit]) continue;
      if (unit == 0 || used_[unit - 1]) runs.push_back({.begin = unit});
      ++runs.back().length;
    }
    return runs;
  }

  std::vector<bool> used_ = std::vector<bool>(kUnits);
};

std::size_t UnitsOf(ByteCount length) {
  return std::max<std::size_t>((length + kSlotAlignment - 1) / kSlotAlignment, 1);
}

class Session {
 public:
  void Allocate(ByteCount length) {
    const std::size_t units = UnitsOf(length);
    const auto expected = reference_.BestFit(units);
    const auto slot = arena_.Allocate(length);
    CHECK(slot.has_value() == expected.has_value());
    if (!slot) return;
    CHECK(slot->offset == expected->begin * kSlotAlignment && slot->length == length);
    reference_.Set(expected->begin, units, true);
    slots_.push_back(*slot);
  }
  void Free(std::size_t which) {
    if (slots_.empty()) return;
    const auto slot = slots_.begin() + static_cast<std::ptrdiff_t>(which % slots_.size());
    reference_.Set(slot->offset / kSlotAlignment, UnitsOf(slot->length), false);
    arena_.Free(*slot);
    slots_.erase(slot);
  }
  void Compare() const {
    CHECK(arena_.in_use() == reference_.in_use() * kSlotAlignment);
    CHECK(arena_.LongestFree() == reference_.LongestFree() * kSlotAlignment);
    CHECK(arena_.slots() == slots_.size());
  }

 private:
  ArenaAllocator arena_{kUnits * kSlotAlignment + kSlotAlignment / 2};  // rounded down
  Reference reference_;
  std::vector<Slot> slots_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Session session;
  for (std::span<const std::uint8_t> rest(data, size); rest.size() >= 2; rest = rest.subspan(2)) {
    if (rest[0] % 2 == 0) {
      session.Allocate(ByteCount{rest[1]} * 16);
    } else {
      session.Free(rest[1]);
    }
    session.Compare();
  }
  return 0;
}
