#pragma once

// What a plan is derived from besides the desired state: its base, and lists of what its streams
// read. Fetched by digest from the coordinator; in a cluster also kept on the state volume, for
// when the coordinator is away.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/callback_guard.h"
#include "base/result.h"
#include "cache-node/control/control_client.h"
#include "cache-node/control/state_dir.h"
#include "cache-node/planning/plan_deriver.h"
#include "coordination/state.h"

namespace optcache::node {

// Used on the loop's thread only.
class PlanParts {
 public:
  // `state`: the one in force. `dir`: nullptr on a laptop. What is passed outlives this.
  PlanParts(ControlClient& control, const StateDir* dir, const coordination::DesiredState& state)
      : control_(control), dir_(dir), state_(state) {}

  struct Parts {
    PlanTask::Base base;
    PlanTask::Lists lists;
  };
  using Done = std::function<void(Result<Parts>)>;
  // Those of the plan of `dataset`. `done` is called from within, or later, but not after this has
  // died.
  void Get(const coordination::DatasetState& dataset, Done done);

 private:
  struct Fetching;
  void Want(const std::string& digest, const std::shared_ptr<Fetching>& fetching);

  ControlClient& control_;
  const StateDir* dir_;
  const coordination::DesiredState& state_;
  PlanTask::Lists lists_;  // those that the state names
  CallbackGuard guard_;    // last
};

}  // namespace optcache::node
