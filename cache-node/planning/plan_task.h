#pragma once

// What a plan is derived from, and how the planner takes it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/stop_check.h"
#include "coordination/state.h"
#include "plan/plan.h"
#include "wire/messages.h"

namespace optcache::node {

// All that a plan is derived from; equal on all nodes (docs/formats/plan.md).
struct PlanTask {
  std::uint64_t number = 0;  // of this task; what is derived says it
  coordination::Version version;
  wire::MemberId self = 0;                         // whose share is told
  std::vector<coordination::StreamState> streams;  // complete ones that have an order
  coordination::Objective objective = coordination::Objective::kBytes;
  std::vector<coordination::MemberCapacity> capacities;
  using Base = std::vector<std::pair<wire::MemberId, std::vector<SampleId>>>;
  Base base;
  plan::Sizes sizes;
  bool positions = false;  // tell where samples are read, too
  // docs/formats/list.md, by digest (hex): what the streams' traces name.
  using Lists = std::map<std::string, std::shared_ptr<const std::string>>;
  Lists lists;
};

// Samples larger than this are kept at their reader's node or not at all: what moves must fit in
// the receivers' transit reserve beside others. Equal on all nodes.
ByteCount MaxMovedBytes(const std::vector<coordination::MemberCapacity>& capacities,
                        const plan::Sizes& sizes);

// The members, in the order of their numbers in the plan.
std::vector<wire::MemberId> MembersOf(const PlanTask& task);
// kNoNode: it is none of them.
NodeIndex IndexOf(const std::vector<wire::MemberId>& members, wire::MemberId member);
// kInvalidArgument: the base does not fit the dataset. Once `stop` says so they mean nothing.
Result<plan::Inputs> InputsOf(const PlanTask& task, const PlanTask::Base& base,
                              const StopCheck& stop);

// The last pass whose order is known.
PassNumber LastPass(const coordination::StreamState& stream);
// Where its passes are taken to end.
Position StopsAt(const coordination::StreamState& stream);

// A stream's passes, one after the other.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;
  // Null: it has no such pass, or it is to stop.
  virtual plan::Order PassOrder(PassNumber pass) = 0;
};
using StreamOrders = std::map<StreamId, std::unique_ptr<StreamOrder>>;
// kDataLoss, kInvalidArgument: which stream's order cannot be made, and why. Once `stop` says so,
// here or later, orders mean nothing.
Result<StreamOrders> OrdersOf(const PlanTask& task, const StopCheck& stop);

}  // namespace optcache::node
