#pragma once

// What each policy would read from the store, and how long an epoch would take: the numbers behind
// `optcache simulate`.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "plan/plan.h"
#include "plan/sizes.h"
#include "simulation/reads.h"

namespace optcache::simulation {

// What they do: simulation/policies/policy.h.
enum class PolicyKind {
  kOptimal,     // the plan; what it gives up stays while there is room
  kMin,         // Belady's MIN by the textbook, with bypass
  kMinForced,   // without
  kOpt4Torch,   // OPT4TorchDataset's plan
  kNoPfs,       // by frequency over the whole run, each node for itself
  kPin,         // keep what comes first, never evict
  kLfu,         // least often used while it is held
  kLfuForEver,  // least often used
  kSieve,
  kRandom,
  kFifo,
  kLru,
  kNone,  // no cache
};
inline constexpr std::array<std::string_view, 13> kPolicyNames{
    "optimal",      "min",   "min-forced", "opt4torch", "nopfs", "pin", "lfu",
    "lfu-for-ever", "sieve", "random",     "fifo",      "lru",   "none"};
std::string_view PolicyName(PolicyKind kind);
std::optional<PolicyKind> PolicyFromName(std::string_view name);

inline constexpr double kLeastBandwidth = 0.001;
inline constexpr double kMostBandwidth = 1000;
inline constexpr double kMostLatency = 1e6;
inline constexpr std::uint32_t kMaxStagingSlots = 1U << 24U;

// A store, beside the jobs that read from it.
struct StoreOptions {
  double bandwidth = 1;  // what it delivers, as a share of what the jobs read when nobody waits
  double latency = 0;    // until the first byte, in reads of all jobs together
  std::uint32_t staging_slots = 64;  // misses of all jobs together that are asked for ahead
};

struct CacheOptions {
  plan::Sizes sizes;
  double capacity = 0.3;  // of all nodes together, as a share of the dataset's bytes, 0 to 1
  plan::Objective objective = plan::Objective::kBytes;
  double lookahead = 0;  // of min and min-forced, in epochs; 0: without limit
  std::uint64_t seed = 0;
  std::vector<StoreOptions> stores;
};

// Ratios are of the reads from Reads::steady_from on.
struct PolicyResult {
  std::uint64_t store_reads = 0;  // of the whole run
  ByteCount store_bytes = 0;      // of the whole run
  double hit_ratio = 0;
  double byte_hit_ratio = 0;
  std::array<double, 10> hit_ratio_by_tenth{};  // of the pass
  double local_per_access = 0;                  // found at the reader's own node
  double peer_per_access = 0;                   // from another node, while the reader waits
  double moved_per_access = 0;     // to another node, in the background; without the last epoch,
                                   // for whose end nothing is kept
  std::vector<double> epoch_time;  // by store: epoch time / compute time
};

// kInvalidArgument if an option is out of range, or a policy can't do what is asked. `progress` is
// called now and then with the reads done so far.
using Progress = std::function<void(std::uint64_t reads_done)>;
Result<PolicyResult> Simulate(const Reads& run, const CacheOptions& options, PolicyKind kind,
                              const Progress& progress = {});

// What no cache of this size can go below.
struct Bound {
  std::optional<std::uint64_t> store_reads;
  std::optional<ByteCount> store_bytes;
};
// Exact for one shuffling job, and for anything of samples of one size; else nothing is known.
Result<Bound> BoundOf(const Reads& run, const CacheOptions& options);

}  // namespace optcache::simulation
