#include "plan/policies.h"

#include <utility>

#include "base/random.h"
#include "plan/bit_vector.h"

namespace optcache::plan {
namespace {

class PinPolicy final : public Policy {
 public:
  PinPolicy(std::uint32_t samples, HomeCapacities capacities)
      : room_(std::move(capacities)), held_(samples) {}

  bool Read(SampleId sample) override {
    if (held_.Test(sample)) return true;
    std::uint64_t& room = room_[HomeOf(sample, room_.size())];
    if (room > 0) {
      --room;
      held_.Set(sample);
    }
    return false;
  }
  bool Holds(SampleId sample) const override { return held_.Test(sample); }

 private:
  HomeCapacities room_;
  BitVector held_;
};

// A ring a node, linked through arrays: from the node's own entry `newer` leads to the sample used
// least recently, `older` to the one used last.
class LruPolicy final : public Policy {
 public:
  LruPolicy(std::uint32_t samples, HomeCapacities capacities)
      : samples_(samples), room_(std::move(capacities)), links_(samples + room_.size()) {
    for (std::uint32_t i = 0; i < links_.size(); ++i)
      links_[i] = {.newer = i, .older = i};
  }

  bool Read(SampleId sample) override {
    const std::size_t home = HomeOf(sample, room_.size());
    const bool hit = Holds(sample);
    if (hit) {
      Unlink(sample);
    } else if (room_[home] > 0) {
      --room_[home];
    } else {
      const std::uint32_t oldest = links_[samples_ + home].newer;
      if (oldest >= samples_) return false;  // A home without any room.
      Unlink(oldest);
    }
    LinkAsNewest(sample, static_cast<std::uint32_t>(samples_ + home));
    return hit;
  }
  bool Holds(SampleId sample) const override { return links_[sample].newer != sample; }

 private:
  // Indices into links_: samples, then the nodes' own entries.
  struct Link {
    std::uint32_t newer;
    std::uint32_t older;
  };

  void Unlink(std::uint32_t i) {
    const Link link = links_[i];
    links_[link.newer].older = link.older;
    links_[link.older].newer = link.newer;
    links_[i] = {.newer = i, .older = i};
  }
  void LinkAsNewest(std::uint32_t i, std::uint32_t node) {
    const std::uint32_t newest = links_[node].older;
    links_[i] = {.newer = node, .older = newest};
    links_[newest].newer = i;
    links_[node].older = i;
  }

  std::uint32_t samples_;
  HomeCapacities room_;
  std::vector<Link> links_;
};

class NonePolicy final : public Policy {
 public:
  bool Read(SampleId /*sample*/) override { return false; }
  bool Holds(SampleId /*sample*/) const override { return false; }
};

}  // namespace

NodeIndex HomeOf(SampleId sample, std::size_t nodes) {
  return static_cast<NodeIndex>(Random::Mix(sample + 1ULL) % nodes);
}

std::unique_ptr<Policy> MakePinPolicy(std::uint32_t samples, HomeCapacities capacities) {
  return std::make_unique<PinPolicy>(samples, std::move(capacities));
}

std::unique_ptr<Policy> MakeLruPolicy(std::uint32_t samples, HomeCapacities capacities) {
  return std::make_unique<LruPolicy>(samples, std::move(capacities));
}

std::unique_ptr<Policy> MakeNonePolicy() {
  return std::make_unique<NonePolicy>();
}

}  // namespace optcache::plan
