// Store bytes when sizes differ much: small files with a few large ones among them.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/plan.h"
#include "unit/plan/plan_testing.h"

namespace optcache::plan {
namespace {

// 14,000 samples, median 1.7 KB, the largest 6.4 MB, 135 MB in all or nearly so: as a game's
// images.
Sizes ImageSizes(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint32_t> bytes;
  for (int i = 0; i < 14'000; ++i) {
    const double normal =
        std::sqrt(-2 * std::log(1 - random.Unit())) * std::cos(6.283185307179586 * random.Unit());
    const double size = std::min(1700 * std::exp(1.75 * normal), 6.4e6);
    bytes.push_back(static_cast<std::uint32_t>(size) + 1);
  }
  bytes[7000] = 6'400'000;
  return Sizes(std::move(bytes));
}

constexpr std::size_t kEpochs = 5;

struct OfBound {
  double bytes = 0;
  double requests = 0;  // of the bound when the smallest are kept
};

// The most samples that any set of `capacity` bytes can have.
std::uint64_t MostSamples(const Sizes& sizes, ByteCount capacity) {
  std::vector<std::uint32_t> by_size;
  for (SampleId sample = 0; sample < sizes.count(); ++sample)
    by_size.push_back(sizes[sample]);
  std::sort(by_size.begin(), by_size.end());
  std::uint64_t count = 0;
  while (count < by_size.size() && by_size[count] <= capacity)
    capacity -= by_size[count++];
  return count;
}

OfBound Planned(NodeIndex nodes, double share, std::uint64_t seed, Objective objective) {
  Random random(seed);
  Inputs inputs;
  inputs.sizes = ImageSizes(seed);
  const auto capacity =
      static_cast<ByteCount>(share * static_cast<double>(inputs.sizes.total())) / nodes;
  inputs.capacities.assign(nodes, capacity);
  inputs.objective = objective;
  inputs.streams.push_back({.id = 0, .node_of_rank = OneRankANode(nodes)});
  Passes passes;
  for (std::size_t i = 0; i < kEpochs; ++i) {
    passes.push_back(Padded(Shuffled(inputs.sizes.count(), random), nodes));
  }
  const CheckedRun run = RunChecked(inputs, {passes});
  const ByteCount total = inputs.sizes.total();
  const auto bytes = static_cast<double>(total + (kEpochs - 1) * (total - capacity * nodes));
  const std::uint64_t count = inputs.sizes.count();
  const auto requests = static_cast<double>(
      count + (kEpochs - 1) * (count - MostSamples(inputs.sizes, capacity * nodes)));
  return {.bytes = static_cast<double>(run.replayed.store_bytes) / bytes,
          .requests = static_cast<double>(run.replayed.store_reads) / requests};
}

TEST(UnequalSizes, StoreBytesComeCloseToTheBound) {
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{3}, NodeIndex{4}}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      EXPECT_LE(Planned(nodes, 0.3, seed, Objective::kBytes).bytes, 1.001);
    }
  }
}

// The smallest are kept first: hardly a request more than any cache must make, and no more bytes.
TEST(UnequalSizes, RequestsComeCloseToTheirBoundAtEqualBytes) {
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{3}, NodeIndex{4}}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("nodes " + std::to_string(nodes) + ", seed " + std::to_string(seed));
      const OfBound planned = Planned(nodes, 0.3, seed, Objective::kRequests);
      EXPECT_GE(planned.requests, 1);
      EXPECT_LE(planned.requests, 1.02);
      EXPECT_LE(planned.bytes, 1.005);
      EXPECT_GT(Planned(nodes, 0.3, seed, Objective::kBytes).requests, 1.3);
    }
  }
}

}  // namespace
}  // namespace optcache::plan
