#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "plan/bit_vector.h"
#include "simulation/cluster.h"

namespace optcache::simulation {
namespace {

// How often `node` reads each sample.
std::vector<std::uint32_t> CountReads(const Reads& run, NodeIndex node) {
  std::vector<std::uint32_t> counts(run.sample_count);
  for (const Read& read : run.reads)
    counts[read.sample] += std::uint32_t{read.reader == node};
  return counts;
}

// What fits of the samples, the most often read first, in an order of the node's own where that is
// equal.
plan::BitVector ChooseByFrequency(const ClusterInput& input, NodeIndex node) {
  const std::vector<std::uint32_t> counts = CountReads(input.run, node);
  std::vector<SampleId> by_frequency(input.run.sample_count);
  std::iota(by_frequency.begin(), by_frequency.end(), SampleId{0});
  const auto rank = [&](SampleId sample) {
    return std::pair(~counts[sample], Random::Mix(sample ^ (std::uint64_t{node} + 1) << 32U));
  };
  std::sort(by_frequency.begin(), by_frequency.end(),
            [&](SampleId a, SampleId b) { return rank(a) < rank(b); });
  plan::BitVector chosen(input.run.sample_count);
  ByteCount room = input.capacities[node];
  for (const SampleId sample : by_frequency) {
    if (counts[sample] == 0) break;
    if (input.sizes[sample] > room) continue;
    room -= input.sizes[sample];
    chosen.Set(sample);
  }
  return chosen;
}

// What was read once by anyone is at all nodes that have chosen it: they fetch ahead.
class NoPfsCluster final : public Cluster {
 public:
  explicit NoPfsCluster(const ClusterInput& input)
      : chosen_by_any_(input.run.sample_count), seen_(input.run.sample_count) {
    for (std::size_t node = 0; node < input.run.nodes; ++node) {
      chosen_.push_back(ChooseByFrequency(input, static_cast<NodeIndex>(node)));
      for (SampleId sample = 0; sample < input.run.sample_count; ++sample)
        chosen_by_any_.SetIf(sample, chosen_.back().Test(sample));
    }
  }

  Result<Outcome> Read(const simulation::Read& read) override {
    if (!seen_.Test(read.sample)) {
      seen_.Set(read.sample);
      return Outcome{};
    }
    if (chosen_[read.reader].Test(read.sample)) return Outcome{.from = Outcome::From::kOwnNode};
    if (chosen_by_any_.Test(read.sample)) return Outcome{.from = Outcome::From::kPeer};
    return Outcome{};
  }

 private:
  std::vector<plan::BitVector> chosen_;  // by node, by sample
  plan::BitVector chosen_by_any_;        // by sample
  plan::BitVector seen_;                 // by sample
};

}  // namespace

std::unique_ptr<Cluster> MakeNoPfsCluster(const ClusterInput& input) {
  return std::make_unique<NoPfsCluster>(input);
}

}  // namespace optcache::simulation
