#include "plan/holders.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "base/random.h"

namespace optcache::plan {
namespace {

constexpr std::uint64_t kHoldersDigestSeed = 0x6f70742d62617365ULL;  // "opt-base"

}  // namespace

void Advance(const PassPlan& plan, std::span<const SampleId> order, Position until,
             Holders& holders) {
  const Position end = std::min(until, plan.end());
  for (Position position = plan.begin(); position < end; ++position) {
    holders[order[static_cast<std::size_t>(position)]] = plan.At(position).keep_at;
  }
}

void Renumber(std::span<const NodeIndex> new_index, Holders& holders) {
  for (NodeIndex& holder : holders) {
    if (holder == kNoNode) continue;
    CHECK(holder < new_index.size());
    holder = new_index[holder];
  }
}

std::uint64_t DigestOf(const Holders& holders) {
  std::uint64_t digest = Random::Mix(kHoldersDigestSeed ^ holders.size());
  for (std::size_t i = 0; i < holders.size(); i += 4) {
    std::uint64_t word = 0;
    const std::size_t end = std::min(i + 4, holders.size());
    for (std::size_t j = i; j < end; ++j) {
      word |= std::uint64_t{holders[j]} << (16 * (j - i));
    }
    digest = Random::Mix(digest ^ word);
  }
  return digest;
}

}  // namespace optcache::plan
