#pragma once

// Orders in which simulated jobs read a dataset. Seeded: one seed gives one run.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/random.h"
#include "base/result.h"
#include "plan/sizes.h"

namespace optcache::simulation {

enum class Workload {
  kPermutation,  // every sample once a pass, in a new order each time
  kReplacement,  // as many reads, each of any sample
  kWeighted,     // the same, by weights that are lognormal with sigma 1
  kHalf,         // a random half of the samples, once each
  kMixture,      // three tenths of the samples in each third of a pass, the others once
  kZipf,         // each read of sample k with probability ~ 1 / (k + 1)^exponent
};
inline constexpr std::array<std::string_view, 6> kWorkloadNames{
    "permutation", "replacement", "weighted", "half", "mixture", "zipf"};
std::string_view WorkloadName(Workload workload);
std::optional<Workload> WorkloadFromName(std::string_view name);

struct WorkloadOptions {
  Workload workload = Workload::kPermutation;
  std::uint32_t samples = 0;
  double zipf_exponent = 1;
  std::uint64_t seed = 0;
};

// Makes passes. Not thread-safe: a value with one owner.
class OrderMaker {
 public:
  explicit OrderMaker(const WorkloadOptions& options);

  std::uint64_t reads_in_pass() const { return reads_in_pass_; }
  std::vector<SampleId> Make(std::uint32_t job, PassNumber pass) const;

 private:
  SampleId Draw(Random& random) const;

  WorkloadOptions options_;
  std::uint64_t reads_in_pass_ = 0;
  std::vector<double> cumulative_;  // weights, if they differ
};

// Sizes of `mean` on average whose logarithms have the standard deviation `sigma`; 1 byte at least.
plan::Sizes LognormalSizes(std::uint32_t samples, double mean, double sigma, std::uint64_t seed);

// A number of the standard normal distribution.
double Normal(Random& random);

}  // namespace optcache::simulation
