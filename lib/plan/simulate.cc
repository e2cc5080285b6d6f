#include "plan/simulate.h"

#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>

#include "plan/plan.h"
#include "plan/policies.h"
#include "plan/replay.h"

namespace optcache::plan {
namespace {

struct NamedPolicy {
  PolicyKind kind;
  std::string_view name;
};
constexpr std::array<NamedPolicy, 5> kPolicies = {{{PolicyKind::kOptimal, "optimal"},
                                                   {PolicyKind::kPin, "pin"},
                                                   {PolicyKind::kLru, "lru"},
                                                   {PolicyKind::kMin, "min"},
                                                   {PolicyKind::kNone, "none"}}};

// One read of the simulated cluster.
struct Access {
  std::uint32_t job = 0;
  PassNumber pass = 0;
  Position position = 0;
  SampleId sample = kNoSample;
  NodeIndex reader = kNoNode;
};

std::uint64_t CapacityOf(const SimulateOptions& options) {
  return static_cast<std::uint64_t>(std::llround(options.capacity * options.samples));
}

std::size_t TenthOf(Position position, const SimulateOptions& options) {
  return static_cast<std::size_t>(position * 10 / options.samples);
}

// The capacity in samples, spread as evenly as whole samples allow.
std::vector<std::uint64_t> CapacityByNode(const SimulateOptions& options) {
  const std::uint64_t total = CapacityOf(options);
  std::vector<std::uint64_t> capacities(options.nodes, total / options.nodes);
  for (std::uint64_t i = 0; i < total % options.nodes; ++i)
    ++capacities[i];
  return capacities;
}

Status CheckOptions(const SimulateOptions& options) {
  const auto invalid = [](std::string message) {
    return Status(Code::kInvalidArgument, std::move(message));
  };
  if (options.samples == 0) return invalid("samples: 0; there must be one at least");
  if (options.epochs == 0) return invalid("epochs: 0; there must be one at least");
  if (options.nodes == 0 || options.nodes >= kNoNode) {
    return invalid("nodes: " + std::to_string(options.nodes) + "; it takes 1 to 65534");
  }
  if (options.jobs == 0 || options.jobs > MergedOrder::kMaxStreams) {
    return invalid("jobs: " + std::to_string(options.jobs) + "; it takes 1 to " +
                   std::to_string(MergedOrder::kMaxStreams));
  }
  if (!(options.capacity >= 0 && options.capacity <= 1)) {
    return invalid("capacity: it is a share of the samples, 0 to 1");
  }
  return OkStatus();
}

// Calls `read` for every read of the run, the jobs taking turns, and `epoch_done` after each epoch.
template <typename ReadFunction, typename EpochFunction>
Status ForEachAccess(const SimulateOptions& options, const ReadFunction& read,
                     const EpochFunction& epoch_done) {
  std::vector<std::vector<SampleId>> orders(options.jobs);
  for (PassNumber pass = 0; pass < options.epochs; ++pass) {
    for (std::uint32_t job = 0; job < options.jobs; ++job) {
      orders[job] = ShuffledOrder(options, job, pass);
    }
    NodeIndex reader = 0;
    for (Position position = 0; position < options.samples; ++position) {
      for (std::uint32_t job = 0; job < options.jobs; ++job) {
        RETURN_IF_ERROR(read(Access{.job = job,
                                    .pass = pass,
                                    .position = position,
                                    .sample = orders[job][position],
                                    .reader = reader}));
      }
      reader = static_cast<NodeIndex>(reader + 1U == options.nodes ? 0 : reader + 1U);
    }
    epoch_done();
  }
  return OkStatus();
}

double Ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The counts as they stood after each epoch.
using StatsByEpoch = std::vector<PlanStats>;

PolicyResult Summarize(const StatsByEpoch& stats) {
  const PlanStats& all = stats.back();
  const PlanStats& cold = stats.front();
  PolicyResult result;
  result.store_reads = all.store_reads;
  const std::uint64_t accesses = all.accesses - cold.accesses;
  if (accesses == 0) return result;
  result.hit_ratio = 1 - Ratio(all.store_reads - cold.store_reads, accesses);
  result.peer_per_access = Ratio(all.peer_hits - cold.peer_hits, accesses);
  const PlanStats& before_last = stats[stats.size() - 2];
  result.moved_per_access =
      Ratio(before_last.moves - cold.moves, before_last.accesses - cold.accesses);
  for (std::size_t i = 0; i < 10; ++i) {
    const std::uint64_t reads = all.accesses_by_tenth[i] - cold.accesses_by_tenth[i];
    const std::uint64_t hits = all.hits_by_tenth[i] - cold.hits_by_tenth[i];
    result.hit_ratio_by_tenth[i] = Ratio(hits, reads);
  }
  return result;
}

Result<Planner> MakePlanner(const SimulateOptions& options, Method method) {
  Inputs inputs;
  inputs.sizes = Sizes::Equal(options.samples, 1);
  inputs.capacities = CapacityByNode(options);
  inputs.method = method;
  std::vector<NodeIndex> node_of_rank(options.nodes);
  std::iota(node_of_rank.begin(), node_of_rank.end(), NodeIndex{0});
  for (std::uint32_t job = 0; job < options.jobs; ++job) {
    StreamInput& stream = inputs.streams.emplace_back();
    stream.id = job;
    stream.node_of_rank = node_of_rank;
  }
  return Planner::Make(std::move(inputs), [options](StreamId stream, PassNumber pass) -> Order {
    if (pass >= options.epochs) return nullptr;
    return std::make_shared<const std::vector<SampleId>>(
        ShuffledOrder(options, static_cast<std::uint32_t>(stream), pass));
  });
}

Result<PolicyResult> SimulatePlan(const SimulateOptions& options, Method method) {
  ASSIGN_OR_RETURN(Planner planner, MakePlanner(options, method));
  Replay replay(Sizes::Equal(options.samples, 1), CapacityByNode(options));
  StatsByEpoch by_epoch;
  std::vector<std::shared_ptr<const PassPlan>> plan_of_job(options.jobs);
  std::vector<std::shared_ptr<const PassPlan>> planned;  // the current window
  const auto covers = [](const PassPlan& plan, const Access& access) {
    return plan.key() == PassKey{.stream = access.job, .pass = access.pass} &&
           plan.Covers(access.position);
  };
  const auto find = [&](const Access& access) -> std::shared_ptr<const PassPlan> {
    for (const auto& plan : planned) {
      if (covers(*plan, access)) return plan;
    }
    return nullptr;
  };
  const auto read = [&](const Access& access) -> Status {
    auto& plan = plan_of_job[access.job];
    if (plan == nullptr || !covers(*plan, access)) plan = find(access);
    if (plan == nullptr) {
      ASSIGN_OR_RETURN(PlanWindow window, planner.Next());
      replay.Evict(window.evictions);
      planned = std::move(window.plans);
      plan = find(access);
    }
    if (plan == nullptr) return {Code::kInternal, "simulate: the plan leaves out a read"};
    replay.Read(access.sample, access.reader, plan->At(access.position),
                TenthOf(access.position, options));
    return OkStatus();
  };
  RETURN_IF_ERROR(ForEachAccess(options, read, [&] { by_epoch.push_back(replay.stats()); }));
  if (replay.misplaced() > 0) {
    return Error(Code::kInternal, "simulate: " + std::to_string(replay.misplaced()) +
                                      " reads did not find their sample where the plan has it");
  }
  PolicyResult result = Summarize(by_epoch);
  result.capacity_exceeded = replay.capacity_exceeded();
  return result;
}

Result<PolicyResult> SimulatePolicy(const SimulateOptions& options, Policy& policy) {
  PlanStats stats;
  StatsByEpoch by_epoch;
  const auto read = [&](const Access& access) {
    const NodeIndex home = HomeOf(access.sample, options.nodes);
    const bool elsewhere = home != access.reader;
    const std::size_t tenth = TenthOf(access.position, options);
    const bool hit = policy.Read(access.sample);
    ++stats.accesses;
    ++stats.accesses_by_tenth[tenth];
    if (hit) {
      ++stats.hits_by_tenth[tenth];
      if (elsewhere) ++stats.peer_hits;
    } else {
      ++stats.store_reads;
      if (elsewhere && policy.Holds(access.sample)) ++stats.moves;
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(ForEachAccess(options, read, [&] { by_epoch.push_back(stats); }));
  return Summarize(by_epoch);
}

}  // namespace

std::string_view PolicyName(PolicyKind kind) {
  for (const NamedPolicy& policy : kPolicies) {
    if (policy.kind == kind) return policy.name;
  }
  return "unknown";
}

std::optional<PolicyKind> PolicyFromName(std::string_view name) {
  for (const NamedPolicy& policy : kPolicies) {
    if (policy.name == name) return policy.kind;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> StoreReadBound(const SimulateOptions& options) {
  if (options.jobs != 1 || options.epochs == 0) return std::nullopt;
  const std::uint64_t samples = options.samples;
  return samples + (options.epochs - 1ULL) * (samples - CapacityOf(options));
}

std::vector<SampleId> ShuffledOrder(const SimulateOptions& options, std::uint32_t job,
                                    PassNumber pass) {
  std::vector<SampleId> order(options.samples);
  std::iota(order.begin(), order.end(), SampleId{0});
  Random random(Random::Mix(options.seed) ^ (std::uint64_t{job} << 32U) ^ pass);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

Result<PolicyResult> Simulate(const SimulateOptions& options, PolicyKind kind) {
  RETURN_IF_ERROR(CheckOptions(options));
  switch (kind) {
    case PolicyKind::kOptimal:
      return SimulatePlan(options, Method::kBest);
    case PolicyKind::kMin:
      return SimulatePlan(options, Method::kMin);
    case PolicyKind::kPin:
      return SimulatePolicy(options, *MakePinPolicy(options.samples, CapacityByNode(options)));
    case PolicyKind::kLru:
      return SimulatePolicy(options, *MakeLruPolicy(options.samples, CapacityByNode(options)));
    case PolicyKind::kNone:
      return SimulatePolicy(options, *MakeNonePolicy());
  }
  return Error(Code::kInternal, "simulate: no such policy");
}

}  // namespace optcache::plan
