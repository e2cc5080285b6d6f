// Plan files of OPT4TorchDataset: what is accepted is written back equally, and can be carried out
// by both runtimes whatever its table says.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "opt4torch/decision_table.h"
#include "opt4torch/plan_file.h"

namespace {

// Replays take memory by the samples that a file claims.
constexpr std::uint32_t kMaxSamples = 1 << 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace optcache::plan;
  const auto plan = ParsePlanFile(std::as_bytes(std::span(data, size)));
  if (!plan) return 0;
  CHECK(ParsePlanFile(optcache::AsBytes(FormatPlanFile(*plan))).value() == *plan);
  if (plan->dataset_size > kMaxSamples) return 0;
  const Sizes sizes = Sizes::Equal(plan->dataset_size, 1);
  for (const auto runtime : {Opt4TorchRuntime::kOneProcess, Opt4TorchRuntime::kShared}) {
    const auto figures = ReplayTable(*plan, runtime, sizes);
    CHECK(figures || runtime == Opt4TorchRuntime::kOneProcess);
    if (figures) CHECK(figures->most_held <= plan->maxsize);
  }
  return 0;
}
