#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/bitmap_tree.h"
#include "plan/sample_lists.h"
#include "simulation/policies/shelf.h"

namespace optcache::plan {
namespace {

// Counts stop here, so that the lists have a limit.
constexpr std::uint32_t kMaxCount = 1U << 20U;

// One list a count, and a set of the counts whose lists are not empty.
class Lfu final : public Policy {
 public:
  Lfu(const Room& room, Counting counting)
      : counting_(counting),
        shelf_(room),
        lists_(room.sizes.count()),
        counts_(room.sizes.count()),
        filled_(kMaxCount + 1) {}

  bool Read(SampleId sample) override {
    const bool held = shelf_.Holds(sample);
    if (held) {
      Unlink(sample);
    } else if (!shelf_.CanEverFit(sample)) {
      return false;
    }
    counts_[sample] = std::min(counts_[sample] + 1, kMaxCount);
    if (!held) {
      while (!shelf_.Fits(sample))
        EvictOne();
      shelf_.Add(sample);
    }
    Link(sample);
    return held;
  }
  bool Holds(SampleId sample) const override { return shelf_.Holds(sample); }

 private:
  // The set gives its largest: counts go in the other way round.
  static std::uint32_t Mirrored(std::uint32_t count) { return kMaxCount - count; }

  void Link(SampleId sample) {
    const std::uint32_t count = counts_[sample];
    while (lists_made_ <= count)
      lists_made_ = static_cast<std::uint32_t>(lists_.AddList()) + 1;
    lists_.PushNewest(count, sample);
    filled_.Insert(Mirrored(count));
  }
  void Unlink(SampleId sample) {
    const std::uint32_t count = counts_[sample];
    lists_.Unlink(sample);
    if (lists_.Oldest(count) == kNoSample) filled_.Erase(Mirrored(count));
  }
  void EvictOne() {
    const SampleId evicted = lists_.Oldest(Mirrored(filled_.Max()));
    Unlink(evicted);
    shelf_.Remove(evicted);
    if (counting_ == Counting::kWhileHeld) counts_[evicted] = 0;
  }

  Counting counting_;
  Shelf shelf_;
  SampleLists lists_;
  std::vector<std::uint32_t> counts_;  // by sample
  BitmapTree filled_;
  std::uint32_t lists_made_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeLfu(Room room, Counting counting) {
  return std::make_unique<Lfu>(room, counting);
}

}  // namespace optcache::plan
