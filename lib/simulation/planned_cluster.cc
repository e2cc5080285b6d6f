// Carries out the plan of plan::Planner, read by read, as the cache nodes of a cluster do.
//
// What the plan keeps is in `holders_`, and `room_` is what it leaves free at each node. What it
// gives up stays in that room as a spare, until the plan needs the room. No plan counts on spares,
// so a read may find one that the plan expects to come from the store.
//
// Without drift, reads come as planned, and a kept sample that is not where the plan has it is an
// error. With drift, the plan is made again now and then, from what is kept.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "plan/sample_lists.h"
#include "simulation/cluster.h"

namespace optcache::simulation {
namespace {

// As cache nodes have it, beside their capacity; used only when rates drift.
constexpr ByteCount kTransitReservePercent = 2;
// How often the plan is made again while rates drift. At capacity .3, four jobs and a drift of a
// tenth, 20,000 samples: never .42 of reads hit, once an epoch .567, 4 times .606, 20 times .614,
// and .617 if the future is known.
constexpr std::size_t kPlansInEpochOfDrift = 10;

// Samples that the plan has given up and that are still there, at one node each.
class Spares {
 public:
  Spares(const plan::Sizes& sizes, std::size_t nodes)
      : sizes_(sizes), nodes_(sizes.count(), kNoNode), bytes_(nodes), by_use_(sizes.count()) {
    for (std::size_t node = 0; node < nodes; ++node)
      by_use_.AddList();
  }

  // If the spares of the node take no more than `room` then.
  void Add(NodeIndex node, SampleId sample, ByteCount room) {
    if (bytes_[node] + sizes_[sample] > room) return;
    nodes_[sample] = node;
    bytes_[node] += sizes_[sample];
    by_use_.PushNewest(node, sample);
  }
  // Where it was; kNoNode: it is no spare.
  NodeIndex Take(SampleId sample) {
    const NodeIndex node = std::exchange(nodes_[sample], kNoNode);
    if (node == kNoNode) return node;
    bytes_[node] -= sizes_[sample];
    by_use_.Unlink(sample);
    return node;
  }
  // The longest unused go first.
  void Trim(NodeIndex node, ByteCount room) {
    while (bytes_[node] > room)
      Take(by_use_.Oldest(node));
  }

 private:
  const plan::Sizes& sizes_;
  std::vector<NodeIndex> nodes_;  // by sample
  std::vector<ByteCount> bytes_;  // by node
  plan::SampleLists by_use_;      // a list a node
};

class PlannedCluster final : public Cluster {
 public:
  PlannedCluster(const ClusterInput& input, plan::Objective objective)
      : run_(input.run),
        sizes_(input.sizes),
        capacities_(input.capacities),
        objective_(objective),
        reserves_(input.capacities.size()),
        room_(input.capacities),
        holders_(input.run.sample_count, kNoNode),
        spares_(input.sizes, input.capacities.size()),
        places_(input.run.jobs.size()) {
    for (std::size_t job = 0; job < places_.size(); ++job)
      places_[job].position = run_.jobs[job].first_position;
    if (!run_.drifts) return;
    for (std::size_t node = 0; node < room_.size(); ++node) {
      reserves_[node] = room_[node] * kTransitReservePercent / 100;
      room_[node] += reserves_[node];
    }
    reads_between_plans_ = run_.reads.size() / run_.epochs / kPlansInEpochOfDrift + 1;
  }

  // From where the jobs are and what is held.
  Status PlanAnew() {
    plan::Inputs inputs;
    inputs.sizes = sizes_;
    inputs.capacities = capacities_;
    inputs.objective = objective_;
    inputs.base = holders_;
    for (std::size_t job = 0; job < places_.size(); ++job) {
      inputs.streams.push_back({.id = job,
                                .node_of_rank = run_.jobs[job].node_of_rank,
                                .rate = run_.jobs[job].rate,
                                .pass = places_[job].pass,
                                .position = places_[job].position,
                                .stops_at = run_.jobs[job].pass_reads});
      places_[job].plans.clear();
    }
    const auto orders = [&run = run_](StreamId job, PassNumber pass) -> plan::Order {
      const auto& passes = run.jobs[static_cast<std::size_t>(job)].passes;
      return pass < passes.size() ? passes[pass] : nullptr;
    };
    ASSIGN_OR_RETURN(plan::Planner planner, plan::Planner::Make(std::move(inputs), orders));
    planner_.emplace(std::move(planner));
    return OkStatus();
  }

  Result<Outcome> Read(const simulation::Read& read) override {
    if (run_.drifts && reads_++ % reads_between_plans_ == 0) RETURN_IF_ERROR(PlanAnew());
    ASSIGN_OR_RETURN(const plan::Decision decision, Decide(read.job));
    const ByteCount bytes = sizes_[read.sample];
    const NodeIndex holder = std::exchange(holders_[read.sample], kNoNode);
    if (holder != kNoNode) room_[holder] += bytes;
    const NodeIndex found = holder != kNoNode ? holder : spares_.Take(read.sample);
    Outcome outcome;
    if (found != kNoNode)
      outcome.from = found == read.reader ? Outcome::From::kOwnNode : Outcome::From::kPeer;
    if (decision.keep_at != kNoNode && bytes <= room_[decision.keep_at]) {
      room_[decision.keep_at] -= bytes;
      holders_[read.sample] = decision.keep_at;
      spares_.Trim(decision.keep_at, RoomForSpares(decision.keep_at));
      outcome.moved = decision.keep_at != read.reader && decision.keep_at != found;
    } else {
      GiveUp(read.sample, found != kNoNode ? found : read.reader);
    }
    if (!run_.drifts && (holder != decision.holder || holders_[read.sample] != decision.keep_at)) {
      return Error(Code::kInternal, "simulate: sample " + std::to_string(read.sample) +
                                        " is not where the plan has it");
    }
    return outcome;
  }

 private:
  // Where a job is, and the plans for what it reads next.
  struct Place {
    PassNumber pass = 0;
    Position position = 0;
    std::deque<std::shared_ptr<const plan::PassPlan>> plans;
  };

  // Of the job's next read.
  Result<plan::Decision> Decide(std::size_t job) {
    Place& place = places_[job];
    const auto is_over = [&](const plan::PassPlan& plan) {
      return plan.key().pass < place.pass || plan.end() <= place.position;
    };
    while (true) {
      while (!place.plans.empty() && is_over(*place.plans.front()))
        place.plans.pop_front();
      if (!place.plans.empty()) break;
      RETURN_IF_ERROR(PlanAhead());
    }
    const plan::Decision decision = place.plans.front()->At(place.position);
    if (++place.position == run_.jobs[job].pass_reads) {
      place.position = 0;
      ++place.pass;
    }
    return decision;
  }

  Status PlanAhead() {
    ASSIGN_OR_RETURN(const plan::PlanWindow window, planner_->Next());
    if (window.plans.empty()) return {Code::kInternal, "simulate: the plan leaves out a read"};
    for (const SampleId sample : window.evictions) {
      const NodeIndex holder = std::exchange(holders_[sample], kNoNode);
      if (holder == kNoNode) continue;
      room_[holder] += sizes_[sample];
      GiveUp(sample, holder);
    }
    for (const auto& plan : window.plans)
      places_[plan->key().stream].plans.push_back(plan);
    return OkStatus();
  }

  void GiveUp(SampleId sample, NodeIndex node) { spares_.Add(node, sample, RoomForSpares(node)); }
  // They take nothing of the reserve.
  ByteCount RoomForSpares(NodeIndex node) const {
    return room_[node] - std::min(room_[node], reserves_[node]);
  }

  const Reads& run_;
  const plan::Sizes& sizes_;
  std::vector<ByteCount> capacities_;
  plan::Objective objective_;
  std::optional<plan::Planner> planner_;
  std::size_t reads_ = 0;
  std::size_t reads_between_plans_ = 0;
  std::vector<ByteCount> reserves_;  // by node, for what moves
  std::vector<ByteCount> room_;  // by node: what the plan keeps nothing in, the reserve included
  plan::Holders holders_;        // of what the plan keeps
  Spares spares_;
  std::vector<Place> places_;  // by job
};

}  // namespace

Result<std::unique_ptr<Cluster>> MakePlannedCluster(const ClusterInput& input,
                                                    plan::Objective objective) {
  auto cluster = std::make_unique<PlannedCluster>(input, objective);
  RETURN_IF_ERROR(cluster->PlanAnew());
  return cluster;
}

}  // namespace optcache::simulation
