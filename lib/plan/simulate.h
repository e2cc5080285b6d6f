#pragma once

// What each policy would read from the store, for shuffling jobs of equal samples: the numbers
// behind `optcache simulate`. Every job has one rank a node and an order of its own, all read at
// one speed.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace optcache::plan {

enum class PolicyKind {
  kOptimal,  // the plan
  kPin,      // keep what comes first, never evict
  kLru,      // evict what was used least recently
  kMin,      // Belady's MIN by the textbook, a node's room for the samples it reads next
  kNone,     // no cache
};

// "optimal", "pin", "lru", "min", "none".
std::string_view PolicyName(PolicyKind kind);
std::optional<PolicyKind> PolicyFromName(std::string_view name);

struct SimulateOptions {
  std::uint32_t samples = 0;
  std::uint32_t epochs = 0;
  std::uint32_t nodes = 1;
  std::uint32_t jobs = 1;
  double capacity = 0;  // of all nodes together, as a share of the samples, 0 to 1
  std::uint64_t seed = 0;
};

// Ratios are of reads from the second epoch on, when the cache is full; store_reads is of all.
struct PolicyResult {
  std::uint64_t store_reads = 0;
  double hit_ratio = 0;
  std::array<double, 10> hit_ratio_by_tenth{};  // of the epoch
  double moved_per_access = 0;  // to another node, in the background; the last epoch, which keeps
                                // nothing, left out
  double peer_per_access = 0;   // from another node, while the reader waits
  std::uint64_t capacity_exceeded = 0;  // reads after which some node held too much
};

// The store reads that no cache can go below, N + (E - 1)(N - C); nothing for several jobs.
std::optional<std::uint64_t> StoreReadBound(const SimulateOptions& options);

// The order in which `job` reads pass `pass`.
std::vector<SampleId> ShuffledOrder(const SimulateOptions& options, std::uint32_t job,
                                    PassNumber pass);

// kInvalidArgument if an option is out of range.
Result<PolicyResult> Simulate(const SimulateOptions& options, PolicyKind kind);

}  // namespace optcache::plan
