#pragma once

// What a warm-up reads, and in which order: decided before the first read, the same in each of its
// processes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

// What one of the nodes has room for.
struct WarmPart {
  std::string node;
  ByteCount room = 0;
  friend bool operator==(const WarmPart&, const WarmPart&) = default;
};

// "node1=13421772" or "node1=12Mi".
Result<WarmPart> ParseWarmPart(std::string_view text);

// For each part the samples that its process reads, in their order: together no more than it has
// room for, and each sample in one part at most. `order` is a pass of the job that is to come, and
// may name a sample several times; what it does not name comes after it, by id; empty: all by id.
// Where not all fit, they are spread evenly over the order: a first epoch then finds its hits in
// all its parts, not all at its beginning. What is left over in a part is less than a small sample.
// kInvalidArgument: the order names a sample that the dataset does not have.
Result<std::vector<std::vector<SampleId>>> ChooseWarm(const DatasetPort& dataset,
                                                      std::span<const SampleId> order,
                                                      std::span<const WarmPart> parts);

}  // namespace optcache::sidecar
