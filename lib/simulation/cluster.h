#pragma once

// The caches of all nodes together under one policy, as `simulate.h` reads through them.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "plan/plan.h"
#include "plan/sizes.h"
#include "simulation/policies/policy.h"
#include "simulation/reads.h"

namespace optcache::simulation {

// Where a read found its sample, and whether it was then sent to another node, in the background.
struct Outcome {
  enum class From : std::uint8_t { kStore, kOwnNode, kPeer };
  From from = From::kStore;
  bool moved = false;
};

// Not thread-safe: one owner. What it is made from must outlive it.
class Cluster {
 public:
  virtual ~Cluster() = default;
  // The next read of the run.
  virtual Result<Outcome> Read(const Read& read) = 0;
};

struct ClusterInput {
  const Reads& run;
  const plan::Sizes& sizes;
  std::vector<ByteCount> capacities;  // by node
};

// Each sample has a home node, by hash, that alone decides whether to keep it. `make_policy` makes
// a home's policy; it sees the samples renumbered from 0.
struct Home {
  plan::Room room;
  plan::Future future;  // empty unless asked for
  std::uint64_t seed = 0;
};
using MakePolicy = std::function<std::unique_ptr<plan::Policy>(const Home& home)>;
enum class NeedsFuture { kNo, kYes };
std::unique_ptr<Cluster> MakeHomedCluster(const ClusterInput& input, NeedsFuture needs_future,
                                          const MakePolicy& make_policy);

// NoPFS: every node keeps the samples that it reads most often in the whole run, and serves them to
// the others.
std::unique_ptr<Cluster> MakeNoPfsCluster(const ClusterInput& input);

// The plan. What it gives up stays where it is while there is room, as at cache nodes, and the
// longest unused goes first. When reads come in another order than planned, because rates drift,
// nodes keep what the plan says as far as their room and the transit reserve allow.
Result<std::unique_ptr<Cluster>> MakePlannedCluster(const ClusterInput& input,
                                                    plan::Objective objective);

}  // namespace optcache::simulation
