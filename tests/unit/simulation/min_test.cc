#include <algorithm>
#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "simulation/policies/policy.h"
#include "unit/simulation/policy_testing.h"

namespace optcache::plan {
namespace {

TEST(Min, HitsAsOftenAsAnyCacheCan) {
  Random random(7);
  for (int i = 0; i < 100; ++i) {
    const auto samples = 2 + static_cast<std::uint32_t>(random.Below(4));
    const Room room{.sizes = Sizes::Equal(samples, 1), .capacity = random.Below(samples)};
    const auto reads = RandomReads(12, samples, random);
    const Future future = FutureOf(reads, samples);
    EXPECT_EQ(Hits(*MakeMin(room, future), reads), MostHitsOfAny(reads, samples, room.capacity));
  }
}

// Forced insertion and a limited view, over plain vectors: what is held, the least recent first.
class SlowMin {
 public:
  SlowMin(const std::vector<SampleId>& reads, std::size_t capacity, MinOptions options)
      : reads_(reads), capacity_(capacity), options_(options) {}

  int Hits() {
    int hits = 0;
    for (now_ = 0; now_ < reads_.size(); ++now_)
      hits += Read(reads_[now_]) ? 1 : 0;
    return hits;
  }

 private:
  static constexpr std::size_t kUnknown = kNoRead;

  std::size_t NextRead(SampleId sample) const {
    for (std::size_t t = now_ + 1; t < reads_.size() && t - now_ <= options_.lookahead; ++t) {
      if (reads_[t] == sample) return t;
    }
    return kUnknown;
  }
  bool Read(SampleId sample) {
    const auto found = std::find(held_.begin(), held_.end(), sample);
    const bool hit = found != held_.end();
    if (hit) held_.erase(found);
    if (capacity_ == 0) return hit;
    if (options_.admission == Admission::kBypass && NextRead(sample) == kUnknown) {
      if (options_.lookahead != kNoRead && held_.size() < capacity_) held_.push_back(sample);
      return hit;
    }
    if (held_.size() == capacity_) {
      auto last = held_.begin();  // of those used equally late, the least recently used
      for (auto it = held_.begin(); it != held_.end(); ++it) {
        if (NextRead(*it) > NextRead(*last)) last = it;
      }
      if (options_.admission == Admission::kBypass && NextRead(*last) < NextRead(sample))
        return hit;
      held_.erase(last);
    }
    held_.push_back(sample);
    return hit;
  }

  std::vector<SampleId> reads_;
  std::size_t capacity_;
  MinOptions options_;
  std::size_t now_ = 0;
  std::vector<SampleId> held_;
};

TEST(Min, AgreesWithOneThatLooksForEachNextRead) {
  Random random(11);
  for (const Admission admission : {Admission::kBypass, Admission::kForced}) {
    for (const std::uint32_t lookahead : {1U, 7U, 30U, 150U, kNoRead}) {
      for (const std::size_t capacity : {0U, 1U, 5U, 19U}) {
        const auto reads = RandomReads(400, 20, random);
        const Future future = FutureOf(reads, 20);
        const MinOptions options{.admission = admission, .lookahead = lookahead};
        const auto policy =
            MakeMin({.sizes = Sizes::Equal(20, 1), .capacity = capacity}, future, options);
        EXPECT_EQ(Hits(*policy, reads), SlowMin(reads, capacity, options).Hits())
            << "capacity " << capacity << ", lookahead " << lookahead;
      }
    }
  }
}

TEST(Min, NeverHoldsMoreBytesThanItHasRoomFor) {
  Random random(13);
  const Sizes sizes({1, 9, 4, 4, 7, 2, 30});
  const auto reads = RandomReads(2'000, 7, random);
  const Future future = FutureOf(reads, 7);
  for (const Admission admission : {Admission::kBypass, Admission::kForced}) {
    const auto policy = MakeMin({.sizes = sizes, .capacity = 15}, future, {.admission = admission});
    for (const SampleId sample : reads) {
      const bool held = policy->Holds(sample);
      ASSERT_EQ(policy->Read(sample), held);
      ByteCount used = 0;
      for (SampleId s = 0; s < 7; ++s)
        used += policy->Holds(s) ? sizes[s] : 0U;
      ASSERT_LE(used, 15U);
    }
  }
}

}  // namespace
}  // namespace optcache::plan
