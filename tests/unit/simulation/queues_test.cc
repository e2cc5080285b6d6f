#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "simulation/policies/policy.h"

namespace optcache::plan {
namespace {

// The policies as their papers tell them, over lists; the front is the oldest.
struct QueueEntry {
  SampleId sample = 0;
  bool visited = false;
};

class SlowQueue {
 public:
  enum class Kind { kFifo, kLru, kSieve };
  SlowQueue(Kind kind, std::vector<std::uint32_t> sizes, ByteCount capacity)
      : kind_(kind), sizes_(std::move(sizes)), capacity_(capacity) {}

  bool Read(SampleId sample) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [sample](const QueueEntry& e) { return e.sample == sample; });
    if (found != entries_.end()) {
      found->visited = true;
      if (kind_ == Kind::kLru) {
        entries_.erase(found);
        entries_.push_back({.sample = sample});
      }
      return true;
    }
    if (sizes_[sample] > capacity_) return false;
    while (Used() + sizes_[sample] > capacity_)
      Evict();
    entries_.push_back({.sample = sample});
    return false;
  }

 private:
  ByteCount Used() const {
    ByteCount used = 0;
    for (const QueueEntry& entry : entries_)
      used += sizes_[entry.sample];
    return used;
  }
  void Evict() {
    if (kind_ == Kind::kSieve) {
      while (entries_[hand_].visited) {
        entries_[hand_].visited = false;
        hand_ = hand_ + 1 == entries_.size() ? 0 : hand_ + 1;
      }
    }
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(hand_));
    if (hand_ == entries_.size()) hand_ = 0;
  }

  Kind kind_;
  std::vector<std::uint32_t> sizes_;
  ByteCount capacity_;
  std::deque<QueueEntry> entries_;
  std::size_t hand_ = 0;
};

void CompareWithSlow(SlowQueue::Kind kind, std::unique_ptr<Policy> (*make)(Room)) {
  for (const bool equal : {true, false}) {
    Random random(3);
    std::vector<std::uint32_t> sizes(50);
    for (std::uint32_t& size : sizes)
      size = equal ? 1 : 1 + static_cast<std::uint32_t>(random.Below(9));
    const ByteCount capacity = equal ? 11 : 60;
    SlowQueue slow(kind, sizes, capacity);
    const auto policy = make({.sizes = Sizes(sizes), .capacity = capacity});
    for (int i = 0; i < 20'000; ++i) {
      const auto sample = static_cast<SampleId>(random.Below(random.Below(50) + 1));
      ASSERT_EQ(policy->Read(sample), slow.Read(sample)) << "read " << i;
    }
  }
}

TEST(Fifo, AgreesWithAList) {
  CompareWithSlow(SlowQueue::Kind::kFifo, MakeFifo);
}

TEST(Lru, AgreesWithAList) {
  CompareWithSlow(SlowQueue::Kind::kLru, MakeLru);
}

TEST(Sieve, AgreesWithAListAndAHand) {
  CompareWithSlow(SlowQueue::Kind::kSieve, MakeSieve);
}

TEST(Queues, HoldNothingWithoutRoom) {
  for (const auto make : {MakeFifo, MakeLru, MakeSieve}) {
    const auto policy = make({.sizes = Sizes::Equal(2, 1), .capacity = 0});
    EXPECT_FALSE(policy->Read(0));
    EXPECT_FALSE(policy->Read(0));
    EXPECT_FALSE(policy->Holds(0));
  }
}

}  // namespace
}  // namespace optcache::plan
