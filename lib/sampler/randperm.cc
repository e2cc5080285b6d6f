#include "sampler/randperm.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "sampler/sequential_sampler.h"

namespace optcache::sampler {
namespace {

// The places to swap with do not depend on the permutation so far. Drawing a batch of them first,
// and asking the memory for them, hides the wait for memory that otherwise is most of the time.
constexpr std::uint32_t kBatch = 128;
using Places = std::array<std::uint32_t, kBatch>;

// for i in 0 .. n-2: swap(order[i], order[i + draw % (n - i)])
void ShuffleNarrow(std::span<SampleId> order, Mt19937& generator, const StopCheck& stop) {
  const auto n = static_cast<std::uint32_t>(order.size());
  Places places;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  for (std::uint32_t begin = 0; n - begin > 1 && !stop.At(begin);) {
    const std::uint32_t batch = std::min(kBatch, n - 1 - begin);
    for (std::uint32_t k = 0; k < batch; ++k) {
      const std::uint32_t i = begin + k;
      places[k] = i + generator.Next() % (n - i);
      __builtin_prefetch(&order[places[k]], 1);
    }
    for (std::uint32_t k = 0; k < batch; ++k)
      std::swap(order[begin + k], order[places[k]]);
    begin += batch;
  }
}

// for i in 0 .. n-1: z = draw % (i + 1); order[i] = order[z]; order[z] = i
void ShuffleWide(std::span<SampleId> order, Mt19937& generator, const StopCheck& stop) {
  const auto n = static_cast<std::uint32_t>(order.size());
  Places places;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  for (std::uint32_t begin = 0; begin < n && !stop.At(begin);) {
    const std::uint32_t batch = std::min(kBatch, n - begin);
    for (std::uint32_t k = 0; k < batch; ++k) {
      places[k] = static_cast<std::uint32_t>(generator.Next64() % (begin + k + 1ULL));
      __builtin_prefetch(&order[places[k]], 1);
    }
    for (std::uint32_t k = 0; k < batch; ++k) {
      order[begin + k] = order[places[k]];
      order[places[k]] = begin + k;
    }
    begin += batch;
  }
}

}  // namespace

Randperm RandpermOf(std::uint64_t n, bool modern) {
  return modern && n >= kWideRandpermFrom ? Randperm::kWide : Randperm::kNarrow;
}

std::uint64_t RandpermWords(std::uint64_t n, Randperm variant) {
  if (variant == Randperm::kWide) return 2 * n;
  return n == 0 ? 0 : n - 1;
}

void AppendRandperm(std::uint64_t n, Randperm variant, Mt19937& generator,
                    std::vector<SampleId>& order, const StopCheck& stop) {
  CHECK(n <= kNoSample);
  const std::size_t begin = order.size();
  AppendSequence(n, order, stop);
  const std::span<SampleId> permuted = std::span(order).subspan(begin);
  if (variant == Randperm::kWide) {
    ShuffleWide(permuted, generator, stop);
  } else {
    ShuffleNarrow(permuted, generator, stop);
  }
}

std::vector<SampleId> MakeRandperm(std::uint64_t n, Randperm variant, Mt19937& generator,
                                   const StopCheck& stop) {
  std::vector<SampleId> order;
  AppendRandperm(n, variant, generator, order, stop);
  return order;
}

}  // namespace optcache::sampler
