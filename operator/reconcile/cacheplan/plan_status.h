#pragma once

// The status of a CachePlan while it is put together. Pure.

#include <cstddef>
#include <string>

#include "operator/reconcile/cacheplan/decide.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

// A value; borrows what is observed.
class PlanStatus {
 public:
  explicit PlanStatus(const PlanObserved& observed);

  void Set(const char* type, bool value, std::string reason, std::string message);
  // A field as it was written before, or none.
  void Keep(const char* field);
  kube::Json& json() { return json_; }

  Change Finish();

 private:
  const PlanObserved& observed_;
  kube::Json conditions_;
  kube::Json json_ = kube::Json::object();
};

inline constexpr std::size_t kMaxJobName = 512;  // bytes, of status.jobs

inline constexpr std::size_t kMaxJobRecipe = 1024;  // bytes; of a longer one, nothing is written

// A job as status.jobs has it. Positions and rates move all the time: small steps keep what was
// written.
kube::Json DescribeJob(const PlanJob& job, const kube::Json& plan);

}  // namespace optcache::reconcile
