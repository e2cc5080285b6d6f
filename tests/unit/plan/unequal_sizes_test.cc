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

double OfByteBound(NodeIndex nodes, double share, std::uint64_t seed) {
  constexpr std::size_t kEpochs = 5;
  Random random(seed);
  Inputs inputs;
  inputs.sizes = ImageSizes(seed);
  const auto capacity =
      static_cast<ByteCount>(share * static_cast<double>(inputs.sizes.total())) / nodes;
  inputs.capacities.assign(nodes, capacity);
  inputs.streams.push_back({.id = 0, .node_of_rank = OneRankANode(nodes)});
  Passes passes;
  for (std::size_t i = 0; i < kEpochs; ++i) {
    passes.push_back(Padded(Shuffled(inputs.sizes.count(), random), nodes));
  }
  const CheckedRun run = RunChecked(inputs, {passes});
  const ByteCount total = inputs.sizes.total();
  const auto bound = static_cast<double>(total + (kEpochs - 1) * (total - capacity * nodes));
  return static_cast<double>(run.replayed.store_bytes) / bound;
}

TEST(UnequalSizes, StoreBytesComeCloseToTheBound) {
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{3}, NodeIndex{4}}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      EXPECT_LE(OfByteBound(nodes, 0.3, seed), 1.001);
    }
  }
}

}  // namespace
}  // namespace optcache::plan
