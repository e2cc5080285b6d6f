#include "cache/home_map.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace optcache::cache {

HomeMap::HomeMap(std::uint64_t dataset, std::vector<MemberId> members)
    : dataset_(dataset), members_(std::move(members)) {
  std::sort(members_.begin(), members_.end());
}

MemberId HomeMap::Home(SampleId id) const {
  CHECK(!members_.empty());
  const std::uint64_t sample = Random::Mix(dataset_ ^ (std::uint64_t{id} << 32U));
  MemberId best = members_.front();
  std::uint64_t best_weight = 0;
  for (const MemberId member : members_) {
    const std::uint64_t weight = Random::Mix(sample + member * 0x9e3779b97f4a7c15ULL);
    if (weight > best_weight) {
      best_weight = weight;
      best = member;
    }
  }
  return best;
}

}  // namespace optcache::cache
