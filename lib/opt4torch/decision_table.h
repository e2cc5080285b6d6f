#pragma once

// OPT4TorchDataset's decision table, filled by MIN with bypass, and what a table does when one of
// its two runtimes carries it out. Specified in docs/formats/opt4torch.md.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "opt4torch/plan_file.h"
#include "simulation/policies/opt4torch.h"
#include "simulation/policies/policy.h"

namespace optcache::plan {

// Called now and then with the reads done so far.
using ReadProgress = std::function<void(std::uint64_t reads_done)>;

// By read. Sizes of one each and a capacity of this many slots: the most hits that there can be, by
// both runtimes. Else the room is in bytes, and never exceeded by the one-process runtime: a sample
// that needs the room of several displaces all of them, if all are used later, and if there are
// rows that can drop them; not optimal where sizes differ.
std::vector<Opt4TorchStep> PlanDecisions(const Future& future, const Room& room,
                                         const ReadProgress& progress = {});

struct TableFigures {
  std::uint64_t reads = 0;
  std::uint64_t hits = 0;
  std::uint64_t dropped = 0;    // samples that were held, by victim or release
  std::uint64_t most_held = 0;  // samples at once
  ByteCount hit_bytes = 0;
  ByteCount most_bytes = 0;                       // at once
  std::array<std::uint64_t, 10> hits_by_tenth{};  // of the run
  std::array<std::uint64_t, 10> reads_by_tenth{};

  double hit_ratio() const {
    return static_cast<double>(hits) / static_cast<double>(reads == 0 ? 1 : reads);
  }
};

// Row by row, as the runtime does. `sizes` are the samples', dataset_size of them. kInvalidArgument
// names the first row at which the one-process runtime, which does not look at maxsize, would hold
// more than that.
Result<TableFigures> ReplayTable(const PlanFile& plan, Opt4TorchRuntime runtime, const Sizes& sizes,
                                 const ReadProgress& progress = {});

}  // namespace optcache::plan
