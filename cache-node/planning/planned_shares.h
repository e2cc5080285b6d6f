#pragma once

// What the plans predict of this node in each pass, whole: where a version begins in the middle of
// a pass, what the one before it said of the reads before its cut counts.

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/stop_check.h"
#include "cache-node/planning/plan_task.h"
#include "plan/node_share.h"
#include "plan/pass_plan.h"

namespace optcache::node {

// Not thread-safe: a value with one owner.
class PlannedShares {
 public:
  // Goes on with `task`: its plans decide from its cuts on.
  void Begin(const PlanTask& task);
  void Clear() { pieces_.clear(); }

  // Adds what a plan says of `self`; `order` is that of its pass. Returns what all plans of the
  // pass say together. Once `stop` says so nothing is added, and what is returned means nothing.
  plan::NodeShare Add(std::shared_ptr<const plan::PassPlan> plan, NodeIndex self,
                      const plan::Order& order, const plan::Sizes& sizes,
                      const StopCheck& stop = {});

 private:
  struct Piece {
    std::shared_ptr<const plan::PassPlan> plan;
    NodeIndex self = kNoNode;
    Position until = 0;  // a later one decides from there on
    plan::NodeShare share;
  };
  std::map<std::pair<StreamId, PassNumber>, std::vector<Piece>> pieces_;
};

}  // namespace optcache::node
