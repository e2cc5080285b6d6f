#pragma once

// OPT4TorchDataset's plan files in and out; specified in docs/formats/opt4torch.md. Pure: bytes to
// values and back.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "simulation/policies/opt4torch.h"

namespace optcache::plan {

inline constexpr std::uint64_t kMaxPlanReads = 100'000'000;
inline constexpr std::uint32_t kMaxPlanSamples = 100'000'000;
inline constexpr ByteCount kMaxPlanFileBytes = 4_GiB;

// As many steps as reads; all samples are below dataset_size.
struct PlanFile {
  std::uint64_t maxsize = 0;  // samples that are held at once
  std::uint32_t dataset_size = 0;
  std::int64_t seed = 0;
  std::vector<SampleId> reads;
  std::vector<Opt4TorchStep> steps;

  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

// kInvalidArgument names the tensor, the row and what was expected.
Result<PlanFile> ParsePlanFile(ByteSpan bytes);

// The file's bytes: 32 a read, and some 200.
std::string FormatPlanFile(const PlanFile& plan);

}  // namespace optcache::plan
