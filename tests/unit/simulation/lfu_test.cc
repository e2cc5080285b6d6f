#include <algorithm>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "simulation/policies/policy.h"

namespace optcache::plan {
namespace {

// Looks at all samples for each eviction.
class SlowLfu {
 public:
  SlowLfu(std::vector<std::uint32_t> sizes, ByteCount capacity, Counting counting)
      : sizes_(std::move(sizes)),
        capacity_(capacity),
        counting_(counting),
        states_(sizes_.size()) {}

  bool Read(SampleId sample) {
    ++now_;
    State& state = states_[sample];
    if (sizes_[sample] > capacity_) return false;
    ++state.count;
    const bool held = state.held;
    while (!state.held) {
      if (used_ + sizes_[sample] > capacity_) {
        Evict();
        continue;
      }
      state.held = true;
      used_ += sizes_[sample];
    }
    state.last_read = now_;
    return held;
  }

 private:
  struct State {
    bool held = false;
    int count = 0;
    int last_read = 0;
  };
  void Evict() {
    const auto worth = [this](std::size_t i) {
      return std::tuple(!states_[i].held, states_[i].count, states_[i].last_read);
    };
    std::size_t least = 0;
    for (std::size_t i = 1; i < states_.size(); ++i) {
      if (worth(i) < worth(least)) least = i;
    }
    states_[least].held = false;
    used_ -= sizes_[least];
    if (counting_ == Counting::kWhileHeld) states_[least].count = 0;
  }

  std::vector<std::uint32_t> sizes_;
  ByteCount capacity_;
  Counting counting_;
  std::vector<State> states_;
  ByteCount used_ = 0;
  int now_ = 0;
};

TEST(Lfu, AgreesWithOneThatLooksAtAll) {
  for (const Counting counting : {Counting::kWhileHeld, Counting::kForEver}) {
    for (const bool equal : {true, false}) {
      Random random(5);
      std::vector<std::uint32_t> sizes(40);
      for (std::uint32_t& size : sizes)
        size = equal ? 1 : 1 + static_cast<std::uint32_t>(random.Below(9));
      const ByteCount capacity = equal ? 9 : 50;
      SlowLfu slow(sizes, capacity, counting);
      const auto policy = MakeLfu({.sizes = Sizes(sizes), .capacity = capacity}, counting);
      for (int i = 0; i < 10'000; ++i) {
        const auto sample = static_cast<SampleId>(random.Below(random.Below(40) + 1));
        ASSERT_EQ(policy->Read(sample), slow.Read(sample)) << "read " << i;
      }
    }
  }
}

}  // namespace
}  // namespace optcache::plan
