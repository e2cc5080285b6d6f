#pragma once

// The plans in force: what each derived pass says, by (stream, pass), the newest version first.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "cache-node/retention/plan_decision.h"
#include "cache-node/retention/use_forecast.h"
#include "plan/node_share.h"
#include "plan/pass_plan.h"
#include "plan/plan.h"
#include "wire/messages.h"

namespace optcache::node {

// One pass of one version, with the members behind its node indices.
struct DerivedPass {
  std::shared_ptr<const plan::PassPlan> plan;
  std::shared_ptr<const std::vector<wire::MemberId>> members;
  Position stops_at = plan::kWholePass;  // the pass is taken to end here
  plan::NodeShare share = {};            // of this node, in the whole pass by all versions
  PositionsOf positions = {};            // of the whole pass, if the task asks for them
  Position length = 0;                   // of the whole pass, with `positions`
};

// Not thread-safe: the event loop owns it.
class PlanIndex final : public PlanLookup {
 public:
  // Later ones go before earlier ones where they overlap.
  void Add(DerivedPass pass);
  // No read of these passes can come any more.
  void Forget(StreamId stream, PassNumber below);
  void ForgetStream(StreamId stream);
  void ForgetAll();

  std::optional<PlanDecision> Find(const ReadKey& key) const override;
  // Does a plan say anything of the read at that place, or of the one before it?
  bool Decides(ReadKey next) const;

  // Of a whole pass, this node's own; nothing if no plan covers it.
  plan::NodeShare ShareOf(StreamId stream, PassNumber pass) const;
  // Of the newest pass: the share of its reads that memory serves.
  double hit_ratio() const { return hit_ratio_; }

 private:
  std::map<std::pair<StreamId, PassNumber>, std::vector<DerivedPass>> passes_;
  std::map<std::pair<StreamId, PassNumber>, plan::NodeShare> shares_;  // kept a little longer
  double hit_ratio_ = 0;
};

}  // namespace optcache::node
