#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "plan/bitmap_tree.h"
#include "plan/sample_lists.h"
#include "simulation/policies/shelf.h"

namespace optcache::plan {
namespace {

// Held samples are filed by their next read if it is known, else in a list.
class Min final : public Policy {
 public:
  Min(const Room& room, const Future& future, MinOptions options)
      : options_(options),
        future_(future),
        shelf_(room),
        by_next_read_(static_cast<std::uint32_t>(future.samples.size())),
        unknown_(room.sizes.count()),
        is_unknown_(room.sizes.count()) {
    unknown_.AddList();
  }

  bool Read(SampleId sample) override {
    const std::uint32_t now = now_++;
    DCHECK(future_.samples[now] == sample);
    Learn(now);
    const bool held = shelf_.Holds(sample);
    if (held) Remove(sample, now);
    const std::uint32_t next = future_.next[now];
    if (options_.admission == Admission::kForced) {
      if (!shelf_.CanEverFit(sample)) return held;
      while (!shelf_.Fits(sample))
        EvictOne();
      Add(sample, next);
    } else {
      Offer(sample, next);
    }
    return held;
  }
  bool Holds(SampleId sample) const override { return shelf_.Holds(sample); }

 private:
  bool unlimited() const { return options_.lookahead == kNoRead; }
  bool Knows(std::uint32_t next) const {
    return next != kNoRead && (unlimited() || next - (now_ - 1) <= options_.lookahead);
  }

  // The read that has just come into view may be the next one of a held sample.
  void Learn(std::uint32_t now) {
    if (unlimited() || future_.samples.size() - now <= options_.lookahead) return;
    const std::uint32_t seen = now + options_.lookahead;
    const SampleId sample = future_.samples[seen];
    if (!shelf_.Holds(sample) || is_unknown_[sample] == 0) return;
    is_unknown_[sample] = 0;
    unknown_.Unlink(sample);
    by_next_read_.Insert(seen);
  }

  void Offer(SampleId sample, std::uint32_t next) {
    if (!shelf_.CanEverFit(sample)) return;
    if (!Knows(next)) {
      // Known to be useless, or no better than what is here.
      if (!unlimited() && shelf_.Fits(sample)) Add(sample, next);
      return;
    }
    while (!shelf_.Fits(sample)) {
      if (unknown_.Oldest(0) == kNoSample && by_next_read_.Max() < next) return;
      EvictOne();
    }
    Add(sample, next);
  }

  void Add(SampleId sample, std::uint32_t next) {
    shelf_.Add(sample);
    if (Knows(next)) {
      by_next_read_.Insert(next);
    } else {
      is_unknown_[sample] = 1;
      unknown_.PushNewest(0, sample);
    }
  }
  void Remove(SampleId sample, std::uint32_t next) {
    shelf_.Remove(sample);
    if (std::exchange(is_unknown_[sample], std::uint8_t{0}) != 0) {
      unknown_.Unlink(sample);
    } else {
      by_next_read_.Erase(next);
    }
  }
  void EvictOne() {
    if (const SampleId oldest = unknown_.Oldest(0); oldest != kNoSample) {
      Remove(oldest, kNoRead);
    } else {
      const std::uint32_t last = by_next_read_.Max();
      Remove(future_.samples[last], last);
    }
  }

  MinOptions options_;
  const Future& future_;
  Shelf shelf_;
  BitmapTree by_next_read_;
  SampleLists unknown_;
  std::vector<std::uint8_t> is_unknown_;
  std::uint32_t now_ = 0;
};

}  // namespace

Future FutureOf(std::vector<SampleId> samples, std::uint32_t sample_count) {
  CHECK(samples.size() < kNoRead);
  Future future{.samples = std::move(samples), .next = {}};
  future.next.resize(future.samples.size());
  std::vector<std::uint32_t> next_read(sample_count, kNoRead);
  for (std::size_t t = future.samples.size(); t-- > 0;) {
    future.next[t] = std::exchange(next_read[future.samples[t]], static_cast<std::uint32_t>(t));
  }
  return future;
}

std::unique_ptr<Policy> MakeMin(Room room, const Future& future, MinOptions options) {
  return std::make_unique<Min>(room, future, options);
}

}  // namespace optcache::plan
