#include "simulation/workload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>

namespace optcache::simulation {
namespace {

// Of the mixture: the samples that are read three times.
constexpr double kOftenRead = 0.3;
constexpr std::uint64_t kWeightsSeed = 0x77656967687473;  // "weights"

std::vector<double> CumulativeWeights(const WorkloadOptions& options) {
  std::vector<double> weights(options.samples);
  Random random(Random::Mix(options.seed ^ kWeightsSeed));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = options.workload == Workload::kZipf
                     ? std::pow(static_cast<double>(i + 1), -options.zipf_exponent)
                     : std::exp(Normal(random));
  }
  std::partial_sum(weights.begin(), weights.end(), weights.begin());
  return weights;
}

void Shuffle(std::span<SampleId> order, Random& random) {
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.Below(i)]);
}

std::uint32_t OftenRead(std::uint32_t samples) {
  return static_cast<std::uint32_t>(std::lround(kOftenRead * samples));
}

// In three parts: each has all that is read often, and a third of the rest.
std::vector<SampleId> MixtureOrder(std::uint32_t samples, Random& random) {
  const std::uint32_t often = OftenRead(samples);
  std::vector<SampleId> rest(samples - often);
  std::iota(rest.begin(), rest.end(), often);
  Shuffle(rest, random);
  std::vector<SampleId> order;
  for (std::size_t part = 0; part < 3; ++part) {
    const std::size_t begin = order.size();
    for (SampleId sample = 0; sample < often; ++sample)
      order.push_back(sample);
    const auto end_of = [&](std::size_t thirds) {
      return rest.begin() + static_cast<std::ptrdiff_t>(rest.size() * thirds / 3);
    };
    order.insert(order.end(), end_of(part), end_of(part + 1));
    Shuffle(std::span(order).subspan(begin), random);
  }
  return order;
}

}  // namespace

std::string_view WorkloadName(Workload workload) {
  return kWorkloadNames[static_cast<std::size_t>(workload)];
}

std::optional<Workload> WorkloadFromName(std::string_view name) {
  const auto* const found = std::find(kWorkloadNames.begin(), kWorkloadNames.end(), name);
  if (found == kWorkloadNames.end()) return std::nullopt;
  return static_cast<Workload>(found - kWorkloadNames.begin());
}

OrderMaker::OrderMaker(const WorkloadOptions& options)
    : options_(options), reads_in_pass_(options.samples) {
  switch (options.workload) {
    case Workload::kPermutation:
    case Workload::kReplacement:
      break;
    case Workload::kHalf:
      reads_in_pass_ = (options.samples + 1) / 2;
      break;
    case Workload::kMixture:
      reads_in_pass_ += 2ULL * OftenRead(options.samples);
      break;
    case Workload::kWeighted:
    case Workload::kZipf:
      cumulative_ = CumulativeWeights(options);
      break;
  }
}

SampleId OrderMaker::Draw(Random& random) const {
  if (cumulative_.empty()) return static_cast<SampleId>(random.Below(options_.samples));
  const double at = random.Unit() * cumulative_.back();
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, at);
  return static_cast<SampleId>(found - cumulative_.begin());
}

std::vector<SampleId> OrderMaker::Make(std::uint32_t job, PassNumber pass) const {
  Random random(Random::Mix(options_.seed) ^ (std::uint64_t{job} << 32U) ^ pass);
  std::vector<SampleId> order(options_.samples);
  std::iota(order.begin(), order.end(), SampleId{0});
  switch (options_.workload) {
    case Workload::kMixture:
      return MixtureOrder(options_.samples, random);
    case Workload::kPermutation:
    case Workload::kHalf:
      Shuffle(order, random);
      order.resize(reads_in_pass_);
      break;
    case Workload::kReplacement:
    case Workload::kWeighted:
    case Workload::kZipf:
      for (SampleId& sample : order)
        sample = Draw(random);
      break;
  }
  return order;
}

plan::Sizes LognormalSizes(std::uint32_t samples, double mean, double sigma, std::uint64_t seed) {
  Random random(Random::Mix(seed));
  std::vector<std::uint32_t> sizes(samples);
  constexpr double kLargest = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t& size : sizes) {
    const double bytes = mean * std::exp(sigma * Normal(random) - sigma * sigma / 2);
    size = static_cast<std::uint32_t>(std::clamp(bytes, 1.0, kLargest));
  }
  return plan::Sizes(std::move(sizes));
}

double Normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Unit()));
  return radius * std::cos(2 * std::numbers::pi * random.Unit());
}

}  // namespace optcache::simulation
