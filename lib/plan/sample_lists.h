#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"

namespace optcache::plan {

// Lists of samples from the oldest to the newest; a sample is in one of them at most. Each list is
// a ring, linked through one array: samples' entries come first, then one entry a list.
class SampleLists {
 public:
  // Once `stop` says so it must not be used.
  explicit SampleLists(std::uint32_t samples, const StopCheck& stop = {}) : samples_(samples) {
    Fill(links_, samples, {}, stop);
  }

  // The number of the new, empty list; they are numbered from 0.
  std::size_t AddList() {
    const auto i = static_cast<std::uint32_t>(links_.size());
    links_.push_back({.newer = i, .older = i});
    return i - samples_;
  }
  // kNoSample: the list is empty, or ends there.
  SampleId Oldest(std::size_t list) const { return SampleAt(links_[samples_ + list].newer); }
  SampleId Newer(SampleId sample) const { return SampleAt(links_[sample].newer); }

  // `sample` must be in no list.
  void PushNewest(std::size_t list, SampleId sample) {
    const auto end = static_cast<std::uint32_t>(samples_ + list);
    const std::uint32_t newest = links_[end].older;
    links_[sample] = {.newer = end, .older = newest};
    links_[newest].newer = sample;
    links_[end].older = sample;
  }
  void Unlink(SampleId sample) {
    const Link link = links_[sample];
    links_[link.newer].older = link.older;
    links_[link.older].newer = link.newer;
  }

 private:
  struct Link {
    std::uint32_t newer = 0;
    std::uint32_t older = 0;
  };

  SampleId SampleAt(std::uint32_t i) const { return i < samples_ ? i : kNoSample; }

  std::uint32_t samples_;
  std::vector<Link> links_;
};

}  // namespace optcache::plan
