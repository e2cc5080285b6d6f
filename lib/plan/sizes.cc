#include "plan/sizes.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace optcache::plan {

Sizes Sizes::Equal(std::uint32_t count, std::uint32_t bytes) {
  Sizes sizes;
  sizes.count_ = count;
  sizes.each_ = bytes;
  sizes.largest_ = count == 0 ? 0 : bytes;
  sizes.total_ = ByteCount{count} * bytes;
  return sizes;
}

Sizes::Sizes(std::vector<std::uint32_t> bytes)
    : count_(static_cast<std::uint32_t>(bytes.size())),
      each_(bytes.empty() ? 0 : bytes.front()),
      largest_(bytes.empty() ? 0 : *std::ranges::max_element(bytes)),
      total_(std::accumulate(bytes.begin(), bytes.end(), ByteCount{0})) {
  const bool differ =
      std::adjacent_find(bytes.begin(), bytes.end(), std::not_equal_to<>()) != bytes.end();
  if (differ) list_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(bytes));
}

}  // namespace optcache::plan
