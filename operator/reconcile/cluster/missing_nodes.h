#pragma once

// Machines on which a node of the cache should run and is no member of the cluster. Placement
// forgets such a machine, so nothing else says that it is missing. Pure: time is an argument.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/dataset.h"
#include "base/clock.h"
#include "operator/reconcile/cluster/cluster_plan.h"

namespace optcache::reconcile {

// A node whose container restarts is back by then.
inline constexpr Duration kMissingAfter = std::chrono::seconds(30);
// A new pod pulls its image and gets its certificate first.
inline constexpr double kNodeStartsWithinSeconds = 600;

// A value.
class MissingNodes {
 public:
  struct Seen {
    const std::map<std::string, MemberMachine>& machines;  // of all node pods, by name
    const coordination::ClusterStatus& status;
    const std::map<std::string, Placed>& placed;  // from before members of `status` were dropped
    MonotonicTime now;
    double unix_seconds = 0;
  };
  void Look(const Seen& seen);

  // Machines, by name: those that the Dataset was placed on, and those that were never members and
  // that it may be placed on. None where `placed` is on as many nodes as the Dataset may have.
  // Those that have been absent for longer than `longer_than`.
  std::vector<std::string> Of(const Placed& placed, const api::Placement& placement,
                              Duration longer_than = kMissingAfter) const;

 private:
  struct Absent {
    std::string machine;
    std::map<std::string, std::string> labels;
    std::set<std::string> left_out;  // Datasets that were elsewhere when it was last a member
    bool was_member = false;
    MonotonicTime since;
    bool had_time = false;  // to become one
  };
  Absent NewlyAbsent(const std::string& node, const Seen& seen) const;

  MonotonicTime now_;                     // of the last look
  std::set<std::string> members_;         // at it
  std::map<std::string, Absent> absent_;  // by pod
};

}  // namespace optcache::reconcile
