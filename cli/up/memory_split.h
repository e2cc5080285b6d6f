#pragma once

// How `optcache up` divides the machines' memory among its datasets: as in a cluster, by what it
// saves (capacity/capacity_shares.h).

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "capacity/settled_reads.h"
#include "coordination/status.h"
#include "coordinator/coordinator.h"

namespace optcache::cli {

// What a user wants of one dataset: spec.capacity at most, `guaranteed` at least.
struct WantedDataset {
  coordination::DatasetSpec spec;
  ByteCount guaranteed = 0;
};

// A value.
class MemorySplit {
 public:
  // Served as they are wanted, until Update says otherwise.
  explicit MemorySplit(std::vector<WantedDataset> wanted);

  // To be asked about once a second. What the coordinator shall serve from now on; nullopt: what it
  // serves already.
  std::optional<std::vector<coordination::DatasetSpec>> Update(
      const coordination::ClusterStatus& status, MonotonicTime now);

 private:
  std::vector<coordination::DatasetSpec> Divide(const std::vector<coordination::Member>& members,
                                                const coordination::ClusterReads& reads) const;
  double Saved(const std::vector<coordination::DatasetSpec>& specs,
               const coordination::ClusterReads& reads) const;

  std::vector<WantedDataset> wanted_;
  coordination::SettledReads reads_;
  std::vector<coordination::DatasetSpec> served_;
};

}  // namespace optcache::cli
