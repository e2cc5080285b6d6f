#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "cli/simulate/simulate_scene.h"
#include "cli/terminal/progress_line.h"
#include "simulation/simulate.h"

namespace optcache::cli {

// Simulates, and says on a terminal how far it is.
class SimulationRunner {
 public:
  SimulationRunner(const SimulateScene& scene, std::size_t runs)
      : scene_(scene), all_(runs * scene.run.reads.size()) {}

  Result<simulation::PolicyResult> Run(const simulation::CacheOptions& cache,
                                       simulation::PolicyKind policy) {
    const auto progress = [&](std::uint64_t reads) {
      line_.Show(simulation::PolicyName(policy), done_ + reads, all_);
    };
    auto result = simulation::Simulate(scene_.run, cache, policy, progress);
    done_ += scene_.run.reads.size();
    return result;
  }

 private:
  const SimulateScene& scene_;
  ProgressLine line_{"reads"};
  std::uint64_t done_ = 0;
  std::uint64_t all_;
};

}  // namespace optcache::cli
