// The policies that keep one list: FIFO, LRU, SIEVE.

#include <utility>
#include <vector>

#include "plan/sample_lists.h"
#include "simulation/policies/shelf.h"

namespace optcache::plan {
namespace {

class Queue final : public Policy {
 public:
  enum class Hit { kStays, kBecomesNewest };
  Queue(const Room& room, Hit hit) : hit_(hit), shelf_(room), lists_(room.sizes.count()) {
    lists_.AddList();
  }

  bool Read(SampleId sample) override {
    const bool held = shelf_.Holds(sample);
    if (held) {
      if (hit_ == Hit::kStays) return true;
      lists_.Unlink(sample);
    } else {
      if (!shelf_.CanEverFit(sample)) return false;
      while (!shelf_.Fits(sample)) {
        const SampleId oldest = lists_.Oldest(0);
        lists_.Unlink(oldest);
        shelf_.Remove(oldest);
      }
      shelf_.Add(sample);
    }
    lists_.PushNewest(0, sample);
    return held;
  }
  bool Holds(SampleId sample) const override { return shelf_.Holds(sample); }

 private:
  Hit hit_;
  Shelf shelf_;
  SampleLists lists_;
};

// A hand goes from the oldest to the newest and around: what was used since it last came by stays,
// the first that was not goes.
class Sieve final : public Policy {
 public:
  explicit Sieve(const Room& room)
      : shelf_(room), lists_(room.sizes.count()), visited_(room.sizes.count()) {
    lists_.AddList();
  }

  bool Read(SampleId sample) override {
    if (shelf_.Holds(sample)) {
      visited_[sample] = 1;
      return true;
    }
    if (!shelf_.CanEverFit(sample)) return false;
    while (!shelf_.Fits(sample))
      EvictOne();
    visited_[sample] = 0;
    shelf_.Add(sample);
    lists_.PushNewest(0, sample);
    return false;
  }
  bool Holds(SampleId sample) const override { return shelf_.Holds(sample); }

 private:
  void EvictOne() {
    if (hand_ == kNoSample) hand_ = lists_.Oldest(0);
    while (visited_[hand_] != 0) {
      visited_[hand_] = 0;
      hand_ = lists_.Newer(hand_);
      if (hand_ == kNoSample) hand_ = lists_.Oldest(0);
    }
    const SampleId evicted = std::exchange(hand_, lists_.Newer(hand_));
    lists_.Unlink(evicted);
    shelf_.Remove(evicted);
  }

  Shelf shelf_;
  SampleLists lists_;
  std::vector<std::uint8_t> visited_;
  SampleId hand_ = kNoSample;  // kNoSample: at the oldest
};

}  // namespace

std::unique_ptr<Policy> MakeFifo(Room room) {
  return std::make_unique<Queue>(room, Queue::Hit::kStays);
}

std::unique_ptr<Policy> MakeLru(Room room) {
  return std::make_unique<Queue>(room, Queue::Hit::kBecomesNewest);
}

std::unique_ptr<Policy> MakeSieve(Room room) {
  return std::make_unique<Sieve>(room);
}

}  // namespace optcache::plan
