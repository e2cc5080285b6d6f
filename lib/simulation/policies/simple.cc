// The policies that keep no order: none, pin, random.

#include <cstddef>
#include <utility>
#include <vector>

#include "base/random.h"
#include "simulation/policies/shelf.h"

namespace optcache::plan {
namespace {

class None final : public Policy {
 public:
  bool Read(SampleId /*sample*/) override { return false; }
  bool Holds(SampleId /*sample*/) const override { return false; }
};

class Pin final : public Policy {
 public:
  explicit Pin(Room room) : shelf_(std::move(room)) {}

  bool Read(SampleId sample) override {
    if (shelf_.Holds(sample)) return true;
    if (shelf_.Fits(sample)) shelf_.Add(sample);
    return false;
  }
  bool Holds(SampleId sample) const override { return shelf_.Holds(sample); }

 private:
  Shelf shelf_;
};

class RandomReplacement final : public Policy {
 public:
  RandomReplacement(Room room, std::uint64_t seed) : shelf_(std::move(room)), random_(seed) {}

  bool Read(SampleId sample) override {
    if (shelf_.Holds(sample)) return true;
    if (!shelf_.CanEverFit(sample)) return false;
    while (!shelf_.Fits(sample))
      EvictOne();
    shelf_.Add(sample);
    held_.push_back(sample);
    return false;
  }
  bool Holds(SampleId sample) const override { return shelf_.Holds(sample); }

 private:
  void EvictOne() {
    const auto i = static_cast<std::size_t>(random_.Below(held_.size()));
    shelf_.Remove(held_[i]);
    held_[i] = held_.back();
    held_.pop_back();
  }

  Shelf shelf_;
  Random random_;
  std::vector<SampleId> held_;
};

}  // namespace

std::unique_ptr<Policy> MakeNone() {
  return std::make_unique<None>();
}

std::unique_ptr<Policy> MakePin(Room room) {
  return std::make_unique<Pin>(std::move(room));
}

std::unique_ptr<Policy> MakeRandom(Room room, std::uint64_t seed) {
  return std::make_unique<RandomReplacement>(std::move(room), seed);
}

}  // namespace optcache::plan
