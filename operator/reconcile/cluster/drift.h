#pragma once

// Nodes that have long not followed the revision that they should: one that is cut off, or of
// another version, or that cannot derive it. Pure: time is an argument.

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordination/dataset_spec.h"
#include "coordination/status.h"

namespace optcache::reconcile {

inline constexpr Duration kDriftAfter = std::chrono::seconds(30);
// One that follows nothing yet reads manifests and derives its first plan.
inline constexpr Duration kFirstPlanWithin = std::chrono::minutes(10);

// A value.
class Drift {
 public:
  // What nodes are told, and what they say.
  void Look(const std::vector<coordination::DatasetSpec>& specs,
            const coordination::ClusterStatus& status, MonotonicTime now);

  // By name.
  std::vector<std::string> Of(const std::string& dataset) const;
  // Are there any, also such that have not differed for long?
  bool Begins(const std::string& dataset) const { return differ_.contains(dataset); }

 private:
  struct Differing {
    std::string wanted;  // the revision
    bool follows_any = false;
    MonotonicTime since;
  };
  using Nodes = std::map<std::string, Differing>;
  // Null: it did not at the last look.
  const Differing* Before(const std::string& dataset, const std::string& node) const;

  std::map<std::string, Nodes> differ_;
  MonotonicTime now_;
};

}  // namespace optcache::reconcile
