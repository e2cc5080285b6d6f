#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulation/policies/policy.h"

namespace optcache::plan {

// What one cache holds, and whether more fits. Not thread-safe: a value with one owner.
class Shelf {
 public:
  explicit Shelf(Room room) : room_(std::move(room)), held_(room_.sizes.count()) {}

  bool Holds(SampleId sample) const { return held_[sample] != 0; }
  std::uint32_t SizeOf(SampleId sample) const { return room_.sizes[sample]; }
  ByteCount used() const { return used_; }
  // Into the empty cache; into what is free.
  bool CanEverFit(SampleId sample) const { return room_.sizes[sample] <= room_.capacity; }
  bool Fits(SampleId sample) const { return room_.sizes[sample] <= room_.capacity - used_; }

  void Add(SampleId sample) {
    held_[sample] = 1;
    used_ += room_.sizes[sample];
  }
  void Remove(SampleId sample) {
    held_[sample] = 0;
    used_ -= room_.sizes[sample];
  }

 private:
  Room room_;
  ByteCount used_ = 0;
  std::vector<std::uint8_t> held_;
};

}  // namespace optcache::plan
